import type { MeanEstimate } from "./confidence-sequence.ts";

/**
 * Sums over blocks of an arm's figure less the control's (`value`), of what a covariate differs by (`covariate`), both
 * times the block's weight, of their squares and products, and of products with the block before (`Lagged`). Plain data.
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
  weightLagged: number;
  valueLagged: number;
  covariateLagged: number;
  valueByWeightLagged: number;
  covariateByWeightLagged: number;
  productLagged: number;
  lastWeight: number;
  lastValue: number;
  lastCovariate: number;
}

/** How blocks were made. */
export interface BlockKind {
  /**
   * Each arm keeps what it has from block to block, such as the queue of a pool: blocks in a row are alike, and fewer of them
   * say as much. False where the order of arms was drawn for every block: then that draw is what the interval rests on.
   */
  readonly carriesOver: boolean;
}

const DRAWN: BlockKind = { carriesOver: false };
/** Of the correlation of a block with the one before: of more nothing is known in the time of a rollout. */
const CORRELATION_MAX = 0.95;

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
    weightLagged: 0,
    valueLagged: 0,
    covariateLagged: 0,
    valueByWeightLagged: 0,
    covariateByWeightLagged: 0,
    productLagged: 0,
    lastWeight: 0,
    lastValue: 0,
    lastCovariate: 0,
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
  const { lastWeight, lastValue, lastCovariate } = sums;
  sums.weightLagged += weight * lastWeight;
  sums.valueLagged += value * lastValue;
  sums.covariateLagged += predicted * lastCovariate;
  sums.valueByWeightLagged += value * lastWeight + weight * lastValue;
  sums.covariateByWeightLagged += predicted * lastWeight + weight * lastCovariate;
  sums.productLagged += value * lastCovariate + predicted * lastValue;
  [sums.lastWeight, sums.lastValue, sums.lastCovariate] = [weight, value, predicted];
}

/** Blocks of both, of two rollouts: the first of the other had none before it. */
export function addedBlocks(one: BlockSums, other: BlockSums): BlockSums {
  const keys = Object.keys(one) as (keyof BlockSums)[];
  const added = Object.fromEntries(keys.map((key) => [key, one[key] + other[key]])) as unknown as BlockSums;
  const { lastWeight, lastValue, lastCovariate } = other;
  return { ...added, lastWeight, lastValue, lastCovariate };
}

/** The mean difference as measured, by weight; its deviation is that of a ratio of sums, by linearization. */
export function plainEstimate(sums: BlockSums, { carriesOver } = DRAWN): MeanEstimate {
  const { count } = sums;
  const degrees = count - 1;
  const mean = sums.value / sums.weight;
  if (degrees < 1) return { count, mean, deviation: NaN, degrees };
  const left = valuesLeft(sums);
  const deviation = Math.sqrt(left / degrees) / (sums.weight / count);
  const worth = carriesOver ? blocksForOne(sums, left, 0) : 1;
  return { count: count / worth, mean, deviation, degrees: Math.max(0, count / worth - 1) };
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
export function adjustedEstimate(sums: BlockSums, kind = DRAWN): MeanEstimate {
  const { count, weight } = sums;
  const plain = plainEstimate(sums, kind);
  const middle = sums.covariate / weight;
  const varied = covariatesLeft(sums);
  if (count < ADJUSTED_MIN || !(varied > 1e-12 * sums.covariateSquared)) return plain;
  const slope = productsLeft(sums) / varied;
  const degrees = count - 2;
  const left = Math.max(0, valuesLeft(sums) - slope * slope * varied);
  const each = weight / count;
  const worth = kind.carriesOver ? blocksForOne(sums, left, slope) : 1;
  return {
    count: count / worth / (1 + (count * (middle * each) ** 2) / varied),
    mean: plain.mean - slope * middle,
    deviation: Math.sqrt(left / degrees) / each,
    degrees: Math.max(0, count / worth - 2),
  };
}

/**
 * How many values in a row say as much as one that stands alone, if each is like the one before it as they are on average:
 * (1 + r) / (1 - r) of an autoregressive series (G. Bayley and J. Hammersley, "The effective number of independent
 * observations in an autocorrelated time series", 1946). Of few values r is found too low, by about (1 + 3 r) / count (M.
 * Kendall, "Note on bias in the estimation of autocorrelation", 1954), and unsure by as much: twice that is added.
 */
export function valuesForOne(correlation: number, count: number): number {
  const likely = correlation + (2 * (1 + 3 * Math.max(0, correlation))) / count;
  const bounded = Math.min(CORRELATION_MAX, Math.max(0, likely));
  return (1 + bounded) / (1 - bounded);
}

/** The same of blocks. `left`: sum of squares of what is left of the values. */
function blocksForOne(sums: BlockSums, left: number, slope: number): number {
  const { count, weight, weightLagged, valueLagged, covariateLagged, productLagged } = sums;
  const each = (sums.value - slope * sums.covariate) / weight;
  const byWeight = sums.valueByWeightLagged - slope * sums.covariateByWeightLagged;
  const together = valueLagged - slope * productLagged + slope * slope * covariateLagged;
  const lagged = together - each * byWeight + each * each * weightLagged;
  // What rounding leaves of blocks that are the same is like nothing.
  return valuesForOne(left > 1e-12 * sums.valueSquared ? lagged / left : 0, count);
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
