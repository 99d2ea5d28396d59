import { assert } from "#core/base/assert.ts";
import type { EngineConfig } from "./config.ts";
import type { KvCache } from "./kv-cache.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";

/** What holds after every step: each block has its holders, in the batch or beside it, and nobody got too much. */
export function verifyEngine(
  { sequencesMax }: EngineConfig,
  kv: KvCache,
  { running, fetches, cohort }: Scheduler,
  held: Iterable<Sequence>,
): void {
  cohort.refreshAll();
  kv.verify([...running, ...fetches.holding, ...held]);
  assert(running.length <= sequencesMax, "the batch is within its limit");
  for (const sequence of running) {
    assert(sequence.state === "running", "a request in the batch runs");
    assert(sequence.computed <= sequence.tokens + sequence.pending, "only existing tokens are computed");
    assert(sequence.generated + sequence.pending <= sequence.target, "no request gets more tokens than it asked for");
  }
}
