import type { Observed } from "#shadow/recorded/observed.ts";
import { uncomparedReason } from "#shadow/recorded/uncompared-reason.ts";

/** Requests that a fit has as load and whose times it does not use, by reason; retried ones are counted elsewhere. */
export function loadOnly(observed: readonly Observed[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of observed) {
    if (one.attempts > 1 || one.endpoint === "") continue;
    const reason = uncomparedReason(one) ?? (one.ttftMicros > 0 ? undefined : "without a first token that was seen");
    if (reason !== undefined) counts[reason] = (counts[reason] ?? 0) + 1;
  }
  return counts;
}
