import type { Setting } from "../candidate/candidate.ts";
import { inForceOf } from "../candidate/in-force.ts";
import type { RecordedRun } from "../recorded/recorded-run.ts";
import { type TuneAnswer, tune } from "../tune/tune.ts";
import type { TuneWork } from "./shadow-message.ts";

/** Part of the conversations that the search sees, and drawn engines that its result is judged on. */
const SHARE = 0.5;
const REPLICAS = 6;

/** A better policy for a window of recorded traffic, in this thread; `pause` is awaited after each simulation. */
export function tuneWindow(
  { objective, bases, scorers, trialsMax, budgetMillis, gainMin }: TuneWork,
  run: RecordedRun,
  setting: Setting,
  pause: () => Promise<void>,
): Promise<TuneAnswer> {
  const losses = new Map<string, number>();
  return tune({
    setting,
    inForce: inForceOf(run.header, run.fleetEvents),
    bases,
    space: { scorers, accepts: () => true },
    objective,
    observed: run.observed,
    share: SHARE,
    trialsMax,
    budgetMillis,
    replicas: REPLICAS,
    gainMin,
    memory: { get: (key) => losses.get(key), put: (key, loss) => void losses.set(key, loss) },
    now: () => performance.now(),
    threadsMax: 1,
    pause,
  });
}
