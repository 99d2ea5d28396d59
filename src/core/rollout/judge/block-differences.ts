import type { MeanEstimate } from "./confidence-sequence.ts";

/** Sums over blocks: of differences, of what a covariate differs by, of their squares and products. Plain data. */
export interface BlockSums {
  count: number;
  difference: number;
  covariate: number;
  differenceSquared: number;
  covariateSquared: number;
  product: number;
}

/** Fewer do not say how much of the difference the covariate explains. */
const ADJUSTED_MIN = 4;

export function noBlocks(): BlockSums {
  return { count: 0, difference: 0, covariate: 0, differenceSquared: 0, covariateSquared: 0, product: 0 };
}

/** One block: an arm's figure less the control's, and the same of the covariate, 0 where there is none. */
export function addBlock(sums: BlockSums, difference: number, covariate: number): void {
  sums.count++;
  sums.difference += difference;
  sums.covariate += covariate;
  sums.differenceSquared += difference * difference;
  sums.covariateSquared += covariate * covariate;
  sums.product += difference * covariate;
}

/** The mean difference as measured. */
export function plainEstimate({ count, difference, differenceSquared }: BlockSums): MeanEstimate {
  const mean = difference / count;
  const degrees = count - 1;
  const deviation = degrees < 1 ? NaN : Math.sqrt(Math.max(0, differenceSquared - count * mean * mean) / degrees);
  return { count, mean, deviation, degrees };
}

/**
 * The mean difference less what the covariate explains (A. Deng and others, "Improving the sensitivity of online controlled
 * experiments by utilizing pre-experiment data", 2013): where the line through all blocks is when the covariate does not
 * differ. The covariate does not depend on the arm, so over the draw of the order its own difference has mean 0. The
 * deviation is that of the line's intercept, times the root of the count.
 */
export function adjustedEstimate(sums: BlockSums): MeanEstimate {
  const { count } = sums;
  const middle = sums.covariate / count;
  const varied = sums.covariateSquared - count * middle * middle;
  if (count < ADJUSTED_MIN || !(varied > 0)) return plainEstimate(sums);
  const slope = (sums.product - middle * sums.difference) / varied;
  const average = sums.difference / count;
  const explained = slope * slope * varied;
  const left = Math.max(0, sums.differenceSquared - count * average * average - explained);
  const degrees = count - 2;
  const deviation = Math.sqrt((left / degrees) * (1 + (count * middle * middle) / varied));
  return { count, mean: average - slope * middle, deviation, degrees };
}
