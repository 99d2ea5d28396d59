import { nameHash, randomFor } from "#core/base/random.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { exponential } from "./exponential.ts";

/** Start times for sessions without a common clock: Poisson at `sessionsPerSecond`, the first at 0; all at 0 when 0. */
export function sessionStarts(seed: number, sessionsPerSecond: number): () => Micros {
  const random = randomFor(seed, nameHash("session-starts"));
  let at: Micros = 0;
  let started = false;
  return () => {
    if (started && sessionsPerSecond > 0)
      at += Math.round((exponential(random) / sessionsPerSecond) * MICROS_PER_SECOND);
    started = true;
    return at;
  };
}
