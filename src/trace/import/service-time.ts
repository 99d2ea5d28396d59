/** A call whose service time was recorded. */
export interface ServiceSample {
  readonly outputTokens: number;
  readonly seconds: number;
}

/** Where a session recorded no service time at all: about the mean of the published sessions. */
const FIRST_TOKEN_SECONDS = 2;
const TOKEN_SECONDS = 0.02;

/**
 * Seconds that a call of so many output tokens took, for calls whose service time was not recorded: least squares of
 * seconds over output tokens on the calls of the same session that have one, never negative.
 */
export function serviceTimeEstimate(samples: readonly ServiceSample[]): (outputTokens: number) => number {
  if (samples.length < 2) return (tokens) => FIRST_TOKEN_SECONDS + TOKEN_SECONDS * tokens;
  let tokensMean = 0;
  let secondsMean = 0;
  for (const sample of samples) {
    tokensMean += sample.outputTokens / samples.length;
    secondsMean += sample.seconds / samples.length;
  }
  let covariance = 0;
  let variance = 0;
  for (const sample of samples) {
    covariance += (sample.outputTokens - tokensMean) * (sample.seconds - secondsMean);
    variance += (sample.outputTokens - tokensMean) * (sample.outputTokens - tokensMean);
  }
  const slope = variance > 0 ? Math.max(0, covariance / variance) : 0;
  const intercept = Math.max(0, secondsMean - slope * tokensMean);
  return (tokens) => intercept + slope * tokens;
}
