/** How near the gateway's expected hit tokens are to those that the engines found in their caches. */
export interface HitEstimate {
  /** That reported both. */
  readonly requests: number;
  /** Tokens expected by the gateway and found by the engines. */
  readonly expectedTokens: number;
  readonly cachedTokens: number;
  /** Expected over found, less one: above 0 the gateway promises too much. Null where the engines found nothing. */
  readonly sumError: number | null;
  /** Mean of |expected - found| a request. */
  readonly tokensErrorMean: number;
  readonly tokensErrorMax: number;
  /** Share of requests, in [0, 1], whose two counts are equal. */
  readonly exactShare: number;
}

/** Compares two columns at the places given; places where either is NaN are left out, null when all are. */
export function hitEstimate(
  expected: ArrayLike<number>,
  found: ArrayLike<number>,
  places: Iterable<number>,
): HitEstimate | null {
  let [requests, expectedTokens, cachedTokens, errorSum, tokensErrorMax, exact] = [0, 0, 0, 0, 0, 0];
  for (const at of places) {
    const [ours, theirs] = [expected[at] ?? Number.NaN, found[at] ?? Number.NaN];
    const error = Math.abs(ours - theirs);
    if (Number.isNaN(error)) continue;
    requests++;
    expectedTokens += ours;
    cachedTokens += theirs;
    errorSum += error;
    tokensErrorMax = Math.max(tokensErrorMax, error);
    if (error === 0) exact++;
  }
  if (requests === 0) return null;
  return {
    requests,
    expectedTokens,
    cachedTokens,
    sumError: cachedTokens === 0 ? null : expectedTokens / cachedTokens - 1,
    tokensErrorMean: errorSum / requests,
    tokensErrorMax,
    exactShare: exact / requests,
  };
}
