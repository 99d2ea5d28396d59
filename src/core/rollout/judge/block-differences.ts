import type { MeanEstimate } from "./confidence-sequence.ts";

/**
 * Sums over blocks of an arm's figure less the control's (`value`), of what a covariate differs by (`covariate`), both
 * times the block's weight, of their squares and products. Plain data.
 */
export interface BlockSums {
  count: number;
  weight: number;
  value: number;
  covariate: number;
  weightSquared: number;
  valueSquared: number;
  covariateSquared: number;
  valueByWeight: number;
  covariateByWeight: number;
  product: number;
}

/** Of fewer nobody knows how much of the difference the covariate explains, and the slope costs more than it brings. */
const ADJUSTED_MIN = 10;

/** Sums over no blocks, to add to. */
export function noBlocks(): BlockSums {
  return {
    count: 0,
    weight: 0,
    value: 0,
    covariate: 0,
    weightSquared: 0,
    valueSquared: 0,
    covariateSquared: 0,
    valueByWeight: 0,
    covariateByWeight: 0,
    product: 0,
  };
}

/**
 * One block: an arm's figure less the control's, the same of the covariate (0 where there is none), and how much it
 * counts, above 0. Only the ratios of weights matter; they must not depend on which arm came first.
 */
export function addBlock(sums: BlockSums, difference: number, covariate: number, weight = 1): void {
  const value = weight * difference;
  const predicted = weight * covariate;
  sums.count++;
  sums.weight += weight;
  sums.value += value;
  sums.covariate += predicted;
  sums.weightSquared += weight * weight;
  sums.valueSquared += value * value;
  sums.covariateSquared += predicted * predicted;
  sums.valueByWeight += value * weight;
  sums.covariateByWeight += predicted * weight;
  sums.product += value * predicted;
}

/** Blocks of both. */
export function addedBlocks(one: BlockSums, other: BlockSums): BlockSums {
  const keys = Object.keys(one) as (keyof BlockSums)[];
  return Object.fromEntries(keys.map((key) => [key, one[key] + other[key]])) as unknown as BlockSums;
}

/** The mean difference as measured, by weight; its deviation is that of a ratio of sums, by linearization. */
export function plainEstimate(sums: BlockSums): MeanEstimate {
  const { count } = sums;
  const degrees = count - 1;
  const mean = sums.value / sums.weight;
  if (degrees < 1) return { count, mean, deviation: NaN, degrees };
  return { count, mean, deviation: Math.sqrt(valuesLeft(sums) / degrees) / (sums.weight / count), degrees };
}

/**
 * The mean difference less what the covariate explains (A. Deng and others, "Improving the sensitivity of online
 * controlled experiments by utilizing pre-experiment data", 2013): where the line through all blocks is when the
 * covariate does not differ. The covariate does not depend on the arm, so over the draw of the order its own difference
 * has mean 0. The line keeps its intercept, which is the effect, and its slope costs a degree of freedom. A covariate
 * that leans to one side leaves less to know the effect by: `count` is how many blocks without one it is worth (M.
 * Lindon and others, "Anytime-valid linear models and regression adjusted causal inference in randomized experiments",
 * 2022).
 */
export function adjustedEstimate(sums: BlockSums): MeanEstimate {
  const plain = plainEstimate(sums);
  const { count, weight } = sums;
  const middle = sums.covariate / weight;
  const varied = covariatesLeft(sums);
  if (count < ADJUSTED_MIN || !(varied > 1e-12 * sums.covariateSquared)) return plain;
  const slope = productsLeft(sums) / varied;
  const degrees = count - 2;
  const left = Math.max(0, valuesLeft(sums) - slope * slope * varied);
  const each = weight / count;
  return {
    count: count / (1 + (count * (middle * each) ** 2) / varied),
    mean: plain.mean - slope * middle,
    deviation: Math.sqrt(left / degrees) / each,
    degrees,
  };
}

/** Sum of squares of what is left of the values when their weighted mean is taken away. */
function valuesLeft({ weight, value, valueSquared, valueByWeight, weightSquared }: BlockSums): number {
  const mean = value / weight;
  return Math.max(0, valueSquared - 2 * mean * valueByWeight + mean * mean * weightSquared);
}

function covariatesLeft({ weight, covariate, covariateSquared, covariateByWeight, weightSquared }: BlockSums): number {
  const mean = covariate / weight;
  return covariateSquared - 2 * mean * covariateByWeight + mean * mean * weightSquared;
}

function productsLeft(sums: BlockSums): number {
  const [mean, middle] = [sums.value / sums.weight, sums.covariate / sums.weight];
  const { product, covariateByWeight, valueByWeight, weightSquared } = sums;
  return product - mean * covariateByWeight - middle * valueByWeight + mean * middle * weightSquared;
}
