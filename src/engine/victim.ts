import { assert } from "#core/base/assert.ts";
import type { EngineConfig } from "./config.ts";
import type { Sequence } from "./sequence.ts";

/**
 * Where the one to yield runs. Every order here is strict and lasts: who is least ready to yield is never preempted
 * by another, gets a token in nearly every step, and so ends. By the place in the batch alone, two equals under
 * `victimTies: first` would preempt each other for ever: who comes back is the last, and the other one is then first.
 */
export function victimOf(
  running: readonly Sequence[],
  { preemption, semantics }: Pick<EngineConfig, "preemption" | "semantics">,
): number {
  let victim = running.length - 1;
  if (preemption === "tail") return victim;
  const tiesToLast = semantics.victimTies === "last";
  for (let i = victim - 1; i >= 0; i--) {
    const candidate = running[i];
    const worst = running[victim];
    assert(candidate !== undefined && worst !== undefined, "a running request exists");
    if (candidate.request.priority < worst.request.priority) continue;
    if (candidate.request.priority === worst.request.priority) {
      if (candidate.submittedAt < worst.submittedAt) continue;
      const tied = candidate.submittedAt === worst.submittedAt;
      if (tied && (tiesToLast || candidate.admission > worst.admission)) continue;
    }
    victim = i;
  }
  return victim;
}
