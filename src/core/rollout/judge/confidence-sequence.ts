/**
 * Intervals that hold at every look together, so that whoever watches a rollout may stop it at any time: with probability
 * 1 - `level` none of them, of all that are ever computed, leaves out the true mean.
 *
 * A t-test made for looking at any time: a normal prior of variance `prior` on the effect in standard deviations and the
 * right Haar prior on the unknown deviation make the likelihood ratio a martingale, which exceeds 1 / level with
 * probability at most `level` (J. Ville). H. Wang and A. Ramdas, "Anytime-valid t-tests and confidence sequences for
 * Gaussian means with unknown variance" (2023), after T. L. Lai, "On confidence sequences" (1976); the ratio in closed form
 * is that of J. N. Rouder and others, "Bayesian t tests for accepting and rejecting the null hypothesis" (2009). It is
 * exact for normal values. For others it holds asymptotically: I. Waudby-Smith and others, "Time-uniform central limit
 * theory and asymptotic confidence sequences" (2021). Where arms are drawn by chance the draw is what it rests on: D. W.
 * Ham and others, "Design-based confidence sequences: a general approach to risk mitigation in online experimentation"
 * (2022).
 */
export interface MeanEstimate {
  /** Independent values: blocks of windows, or sessions. */
  readonly count: number;
  readonly mean: number;
  /** Estimated standard deviation of one value. */
  readonly deviation: number;
  /** Degrees of freedom that the deviation was estimated with. */
  readonly degrees: number;
  /** Of one value, where it is known: third central moment over the deviation's third power. */
  readonly skewness?: number;
}

/** Of fewer values the judge has no interval: it would reach further than any rollout does. */
export const VALUES_MIN = 3;

/** The prior that makes the interval about the narrowest when there are `count` values. */
export function priorFor(count: number, level: number): number {
  const twice = -2 * Math.log(level);
  return (twice + Math.log(twice + 1)) / Math.max(1, count);
}

/** Half of the interval's width; Infinity while there are too few values to say anything. */
export function reach({ count, deviation, degrees }: MeanEstimate, level: number, prior: number): number {
  const squared = squaredReach(count, degrees, level, prior);
  return squared === Infinity ? Infinity : deviation * Math.sqrt((squared * degrees) / count);
}

/** Its square over that of the deviation, times the count, over the degrees: `evidence` at it is 1 / level. */
export function squaredReach(count: number, degrees: number, level: number, prior: number): number {
  if (degrees < 1) return Infinity;
  const spread = 1 + count * prior;
  const bound = (Math.sqrt(spread) / level) ** (2 / (degrees + 1));
  return bound >= spread ? Infinity : (bound - 1) / (1 - bound / spread);
}

/** The likelihood ratio against a mean of 0: at 1 / level or above the interval leaves out 0. */
export function evidence({ count, mean, deviation, degrees }: MeanEstimate, prior: number): number {
  if (degrees < 1) return 1;
  if (deviation === 0) return mean === 0 ? 1 : Infinity;
  const spread = 1 + count * prior;
  const squared = (count * mean * mean) / (deviation * deviation * degrees);
  return ((1 + squared) / (1 + squared / spread)) ** ((degrees + 1) / 2) / Math.sqrt(spread);
}

/** What an interval is to find, and how surely. */
export interface Finding {
  readonly level: number;
  /** Normal quantile of the power: 0.84 finds it with a probability of 80 %, 1.28 with 90 %. */
  readonly standardErrors: number;
  /** Degrees of freedom that the deviation of so many values has; one less than them where it is left out. */
  readonly degreesOf?: (count: number) => number;
  /** Standard error of the effect itself, where it was estimated; 0 where it is left out. */
  readonly effectError?: number;
}

/**
 * Values after which a mean of `effect` is found, if their deviation is that; undefined where it takes more than
 * `valuesMax`.
 */
export function valuesToFind(
  effect: number,
  deviation: number,
  finding: Finding & { readonly valuesMax: number; readonly valuesMin?: number },
): number | undefined {
  const { valuesMax, valuesMin = VALUES_MIN } = finding;
  for (let count = valuesMin; count <= valuesMax; count = Math.max(count + 1, Math.floor(count * 1.02))) {
    if (effectFound(count, deviation, finding) <= Math.abs(effect)) return count;
  }
  return undefined;
}

/**
 * The smallest mean that so many values find: the minimum detectable difference. The interval's reach, and the asked-for
 * number of errors more: those of the mean, those of the reach, since the deviation is estimated too, and the effect's own.
 */
export function effectFound(count: number, deviation: number, finding: Finding): number {
  const { level, standardErrors, degreesOf = (values) => values - 1, effectError = 0 } = finding;
  const degrees = degreesOf(count);
  const own = reach({ count, mean: 0, deviation, degrees }, level, priorFor(count, level));
  return own + standardErrors * Math.sqrt(deviation ** 2 / count + own ** 2 / (2 * degrees) + effectError ** 2);
}
