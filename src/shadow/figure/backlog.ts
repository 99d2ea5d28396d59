import { type Interval, predictionInterval } from "./interval.ts";

/** What a queue does in the end, which is known where single waits are not. */
export interface Backlog {
  /** Wait that requests gain per time of traffic: seconds a second, by least squares over arrivals. Below 0 it shrinks. */
  readonly growth: number;
  /** From the last arrival until the last answer is whole. */
  readonly drainMicros: number;
}

/** A saturated candidate's, with its intervals. */
export interface PredictedBacklog extends Backlog {
  readonly growthInterval: Interval;
  readonly drainInterval: Interval;
}

/** An interval of the mean time to the first token that is wider, upper over lower end, states nothing worth knowing. */
export const KNOWABLE_WIDTH = 4;

/** By request; NaN where one never came or was never answered. Undefined where fewer than two were. */
export function backlogOf(
  arrivalMicros: Float64Array,
  ttftMicros: Float64Array,
  e2eMicros: Float64Array,
): Backlog | undefined {
  let [count, meanAt, meanWait, lastAt, endAt] = [0, 0, 0, -Infinity, -Infinity];
  for (let i = 0; i < arrivalMicros.length; i++) {
    const at = arrivalMicros[i]!;
    if (Number.isNaN(at) || Number.isNaN(ttftMicros[i]!)) continue;
    count++;
    meanAt += (at - meanAt) / count;
    meanWait += (ttftMicros[i]! - meanWait) / count;
    lastAt = Math.max(lastAt, at);
    endAt = Math.max(endAt, at + e2eMicros[i]!);
  }
  let [both, squares] = [0, 0];
  for (let i = 0; i < arrivalMicros.length; i++) {
    const at = arrivalMicros[i]! - meanAt;
    if (Number.isNaN(at) || Number.isNaN(ttftMicros[i]!)) continue;
    both += at * (ttftMicros[i]! - meanWait);
    squares += at * at;
  }
  return squares > 0 ? { growth: both / squares, drainMicros: endAt - lastAt } : undefined;
}

/**
 * The backlog in place of a mean time to the first token that cannot be known: where its interval is wider than
 * KNOWABLE_WIDTH, as near saturation, where a little of speed is much of a queue. Undefined elsewhere.
 */
export function predictedBacklog(
  simulated: Backlog | undefined,
  replicas: readonly (Backlog | undefined)[],
  ttftMean: Interval | undefined,
): PredictedBacklog | undefined {
  if (simulated === undefined || ttftMean === undefined || !(ttftMean.high > KNOWABLE_WIDTH * ttftMean.low))
    return undefined;
  const drawn = replicas.filter((one) => one !== undefined);
  const growthInterval = predictionInterval(
    simulated.growth,
    drawn.map(({ growth }) => growth),
    "linear",
  );
  const drains = drawn.map(({ drainMicros }) => drainMicros);
  const drainInterval = predictionInterval(simulated.drainMicros, drains, "logarithm");
  return growthInterval && drainInterval && { ...simulated, growthInterval, drainInterval };
}
