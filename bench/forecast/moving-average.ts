import type { FigureName, Sample } from "./sample.ts";

/** Weight of the latest request. */
const WEIGHT = 0.1;

/**
 * For each sample, the mean of what its endpoint's requests took until then, the latest counting most; of all of them
 * before it has any.
 */
export function movingAverages(samples: readonly Sample[], figure: FigureName): number[] {
  const known = samples
    .filter((sample) => sample.measured[figure] !== undefined)
    .toSorted((a, b) => a.knownAt[figure] - b.knownAt[figure]);
  const means = new Map<string, number>();
  let all = NaN;
  let next = 0;
  const fold = (mean: number | undefined, value: number): number =>
    mean === undefined || Number.isNaN(mean) ? value : mean + WEIGHT * (value - mean);
  return samples.map(({ at, endpoint }) => {
    for (; next < known.length && known[next]!.knownAt[figure] <= at; next++) {
      const { endpoint: where, measured } = known[next]!;
      means.set(where, fold(means.get(where), measured[figure]!));
      all = fold(all, measured[figure]!);
    }
    return means.get(endpoint) ?? all;
  });
}
