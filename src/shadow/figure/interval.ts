/** From `low` to `high`, in the unit of what it is about. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Part of the outcomes that a prediction interval is to hold. */
export const COVERAGE = 0.9;

/** Student's t that 95 % lie below, by degrees of freedom from 1. */
const T_95 = [
  6.314, 2.92, 2.353, 2.132, 2.015, 1.943, 1.895, 1.86, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.74,
  1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697,
];

/**
 * Where one more replica would lie with 90 %: mean +- t s sqrt(1 + 1 / R), so that few replicas give a wide interval
 * rather than a wrong one. Figures that are above 0 are taken in logarithms. The prediction itself is always inside: what
 * chance does to a queue is not symmetric. Undefined below two replicas.
 */
export function predictionInterval(
  prediction: number,
  replicas: readonly number[],
  scale: "logarithm" | "linear",
): Interval | undefined {
  const count = replicas.length;
  if (count < 2 || !Number.isFinite(prediction)) return undefined;
  const values = scale === "logarithm" ? replicas.map(Math.log) : replicas;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  if (!Number.isFinite(squares)) return undefined;
  if (values.every((value) => value === values[0])) {
    const [same] = replicas as readonly [number, ...number[]];
    return { low: Math.min(prediction, same), high: Math.max(prediction, same) };
  }
  const reach = (T_95[count - 2] ?? 1.645 + 1.5 / count) * Math.sqrt((squares / (count - 1)) * (1 + 1 / count));
  const ends = [mean - reach, mean + reach].map((end) => (scale === "logarithm" ? Math.exp(end) : end));
  return { low: Math.min(prediction, ends[0]!), high: Math.max(prediction, ends[1]!) };
}
