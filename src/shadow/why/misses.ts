import type { RequestRatio } from "./observed-ratios.ts";

/** How much slower: logarithms of factors, of steps and of prompt tokens beyond that. */
export interface Slowness {
  readonly steps: number;
  readonly prompts: number;
}

/** Neighbours in time wait for each other: they are no evidence of their own. */
const BLOCKS = 20;

/** How far a simulation is off, by request in order of arrival: each both of its first token and its answer. */
export interface Misses {
  readonly mean: number;
  readonly byRequest: ReadonlyMap<number, number>;
}

/** Where a model is off for the whole fleet, that is no engine's. */
export function missesOf(requests: readonly RequestRatio[], fleet: Slowness): Misses {
  const byRequest = new Map(requests.map((one) => [one.index, missOf(one, fleet)]));
  const sum = [...byRequest.values()].reduce((all, one) => all + one, 0);
  return { mean: byRequest.size === 0 ? Infinity : sum / byRequest.size, byRequest };
}

function missOf({ firstToken, answer }: RequestRatio, fleet: Slowness): number {
  const of = (ratio: number, usual: number) => (Number.isNaN(ratio) ? 0 : Math.abs(ratio - usual));
  return of(firstToken, fleet.prompts) + of(answer, fleet.steps);
}

/** Whether what was observed is closer to the one by so many standard errors. */
export function isCloser(one: Misses, other: Misses, errorsMin: number): boolean {
  const gains = [...one.byRequest].flatMap(([index, miss]) => {
    const before = other.byRequest.get(index);
    return before === undefined ? [] : [before - miss];
  });
  const count = Math.min(BLOCKS, gains.length);
  if (count < 2) return false;
  const means = Array.from({ length: count }, (_, block) => {
    const of = gains.slice(
      Math.floor((block * gains.length) / count),
      Math.floor(((block + 1) * gains.length) / count),
    );
    return of.reduce((sum, gain) => sum + gain, 0) / of.length;
  });
  const mean = means.reduce((sum, value) => sum + value, 0) / count;
  const variance = means.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  return mean > 0 && mean >= errorsMin * Math.sqrt(variance / count);
}
