import { nameHash, randomFor } from "#core/random.ts";

/** Draws in all; each replica takes its part of them. */
const DRAWS = 1000;
/** Blocks that requests are resampled by, at most. */
const BLOCKS_MAX = 512;

/** How sure an order is. Candidates have the places that they were given in. */
export interface Ranking {
  readonly draws: number;
  /** Share of draws in which the candidate's mean is the least. */
  readonly first: readonly number[];
  /** `before[a][b]`: share of draws in which a's mean is below b's; an equal mean counts half. */
  readonly before: readonly (readonly number[])[];
}

/** Sums of a metric over blocks of neighbouring requests, and how many of them had a value. */
export interface BlockSums {
  readonly sums: Float64Array;
  readonly counts: Float64Array;
}

export function blockSumsOf(values: Float64Array): BlockSums {
  const length = Math.max(Math.ceil(Math.sqrt(values.length)), Math.ceil(values.length / BLOCKS_MAX));
  const blocks = Math.ceil(values.length / length);
  const [sums, counts] = [new Float64Array(blocks), new Float64Array(blocks)];
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i]!)) continue;
    const block = Math.floor(i / length);
    sums[block]! += values[i]!;
    counts[block]!++;
  }
  return { sums, counts };
}

/**
 * Ranks candidates by their mean over and over: in every replica of the simulation, on requests resampled by blocks. All
 * candidates meet the same replica and the same requests each time. `replicas[r][c]` is candidate c's blocks in replica r.
 */
export function rankingOf(replicas: readonly (readonly BlockSums[])[], seed: number): Ranking {
  const candidates = replicas[0]?.length ?? 0;
  const perReplica = Math.ceil(DRAWS / replicas.length);
  const random = randomFor(seed, nameHash("ranking"));
  const first = new Float64Array(candidates);
  const before = Array.from({ length: candidates }, () => new Float64Array(candidates));
  const means = new Float64Array(candidates);
  const sums = new Float64Array(candidates);
  const counts = new Float64Array(candidates);
  for (const replica of replicas) {
    const blocks = replica[0]?.sums.length ?? 0;
    for (let draw = 0; draw < perReplica; draw++) {
      sums.fill(0);
      counts.fill(0);
      for (let i = 0; i < blocks; i++) {
        const block = random.below(blocks);
        for (let c = 0; c < candidates; c++) {
          sums[c]! += replica[c]!.sums[block]!;
          counts[c]! += replica[c]!.counts[block]!;
        }
      }
      // Who answers nothing comes last.
      for (let c = 0; c < candidates; c++) means[c] = counts[c]! > 0 ? sums[c]! / counts[c]! : Infinity;
      count(means, first, before);
    }
  }
  const draws = replicas.length * perReplica;
  return {
    draws,
    first: Array.from(first, (share) => share / draws),
    before: before.map((row) => Array.from(row, (share) => share / draws)),
  };
}

function count(means: Float64Array, first: Float64Array, before: readonly Float64Array[]): void {
  let least = Infinity;
  let leaders = 0;
  for (const mean of means) {
    if (mean < least) [least, leaders] = [mean, 1];
    else if (mean === least) leaders++;
  }
  for (let a = 0; a < means.length; a++) {
    if (means[a] === least) first[a]! += 1 / leaders;
    for (let b = 0; b < means.length; b++) {
      if (a === b) continue;
      if (means[a]! < means[b]!) before[a]![b]!++;
      else if (means[a] === means[b]) before[a]![b]! += 0.5;
    }
  }
}
