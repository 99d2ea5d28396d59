import { nameHash, type Random, randomFor } from "#core/base/random.ts";
import type { Interval } from "../figure/interval.ts";
import { meanOf } from "../figure/mean-of.ts";
import { gainBetween, isTail, type Losses, type Objective } from "../job/objective.ts";

/** The same requests under the profile in force and under another one, on the same engines. */
export interface PairedLosses {
  readonly before: Losses;
  readonly after: Losses;
}

/** What is gained: a part of the loss in force for times, a difference of shares for goodput. */
export interface Gain extends Interval {
  readonly value: number;
  /** Conversations or stretches of time that were resampled. */
  readonly units: number;
  /** Probability of as large a gain where there is none, one-sided. */
  readonly chance: number;
}

/** Rows that belong together, by number; rows of number -1 are left out. */
export interface Units {
  readonly ofRow: Int32Array;
  readonly count: number;
}

const DRAWS = 800;
/** Of the interval, on both sides together. */
const LEVEL = 0.05;
/** Student's t that 97.5 % lie below over the normal's, roughly: few units know their own spread badly. */
const WIDER_BY_UNITS = 2;

/**
 * The gain over all replicas, with an interval that holds what is chance over units (conversations or stretches of time,
 * drawn with repetition) and over engines (a replica is drawn with each), and the chance of it: signs of the units'
 * differences are flipped at random for means, and for percentiles the share of draws without a gain counts.
 */
export function gainOf(
  objective: Objective,
  replicas: readonly PairedLosses[],
  units: Units,
  seed: number,
): Gain | undefined {
  const random = randomFor(seed, nameHash("gain"));
  const all = replicas.map((one) => new UnitLosses(objective, one, units));
  const value = meanOf(all.map((one) => one.gain(undefined)));
  const present = all[0]?.units ?? 0;
  if (present === 0 || !Number.isFinite(value)) return undefined;
  const draws = new Float64Array(DRAWS);
  const times = new Int32Array(units.count);
  for (let draw = 0; draw < DRAWS; draw++) {
    const one = all[random.below(all.length)]!;
    one.draw(random, times);
    draws[draw] = one.gain(times);
  }
  draws.sort();
  const wider = 1 + WIDER_BY_UNITS / Math.max(1, present - 1);
  const low = draws[Math.floor((LEVEL / 2) * DRAWS)]!;
  const high = draws[Math.ceil((1 - LEVEL / 2) * DRAWS) - 1]!;
  const without = draws.reduce((sum, gain) => sum + (gain > 0 ? 0 : 1), 0);
  return {
    value,
    low: value - wider * Math.max(0, value - low),
    high: value + wider * Math.max(0, high - value),
    units: present,
    chance: isTail(objective) ? (1 + without) / (1 + DRAWS) : signChance([meanDifferences(all)], seed)[0]!,
  };
}

/**
 * The chance of each of several candidates' gains as the best of all of them, by the distribution of the largest of their
 * studentized sums when the units' signs are flipped, the same flips for all (P. H. Westfall and S. S. Young, 1993).
 * `differences[c][u]` is candidate c's sum over unit u, above 0 for a gain.
 */
export function signChance(differences: readonly Float64Array[], seed: number): number[] {
  const random = randomFor(seed, nameHash("signs"));
  const units = differences[0]?.length ?? 0;
  const scale = differences.map((one) => Math.sqrt(one.reduce((sum, value) => sum + value * value, 0)));
  const score = (sum: number, c: number) => (scale[c]! > 0 ? sum / scale[c]! : 0);
  const seen = differences.map((one, c) =>
    score(
      one.reduce((sum, value) => sum + value, 0),
      c,
    ),
  );
  const reached = new Float64Array(differences.length);
  const signs = new Int8Array(units);
  for (let draw = 0; draw < FLIPS; draw++) {
    for (let u = 0; u < units; u++) signs[u] = random.below(2) === 0 ? -1 : 1;
    let largest = -Infinity;
    differences.forEach((one, c) => {
      let sum = 0;
      for (let u = 0; u < units; u++) sum += signs[u]! * one[u]!;
      largest = Math.max(largest, score(sum, c));
    });
    for (let c = 0; c < reached.length; c++) if (largest >= seen[c]! - 1e-12) reached[c]!++;
  }
  return Array.from(reached, (count) => (1 + count) / (1 + FLIPS));
}

const FLIPS = 2_000;

/** Sum over each unit of what its requests gain, the mean of the replicas. */
export function unitDifferences(replicas: readonly PairedLosses[], units: Units): Float64Array {
  const sums = new Float64Array(units.count);
  for (const { before, after } of replicas) {
    for (let row = 0; row < before.length; row++) {
      const [unit, difference] = [units.ofRow[row]!, before[row]! - after[row]!];
      if (unit >= 0 && !Number.isNaN(difference)) sums[unit]! += difference / replicas.length;
    }
  }
  return sums;
}

function meanDifferences(all: readonly UnitLosses[]): Float64Array {
  const sums = new Float64Array(all[0]!.before.length);
  for (const { before, after } of all)
    for (let u = 0; u < sums.length; u++) sums[u]! += (before[u]! - after[u]!) / all.length;
  return sums;
}

/** Losses of one replica by unit, and in rising order where a percentile is asked about. */
class UnitLosses {
  readonly #objective: Objective;
  /** Sums over each unit. */
  readonly before: Float64Array;
  readonly after: Float64Array;
  readonly #pairs: Float64Array;
  /** Units that have a pair. */
  readonly #present: readonly number[];
  readonly #sorted: readonly [Sorted, Sorted] | undefined;

  constructor(objective: Objective, { before, after }: PairedLosses, { ofRow, count }: Units) {
    this.#objective = objective;
    this.before = new Float64Array(count);
    this.after = new Float64Array(count);
    this.#pairs = new Float64Array(count);
    const rows: number[] = [];
    for (let row = 0; row < before.length; row++) {
      const unit = ofRow[row]!;
      if (unit < 0 || Number.isNaN(before[row]! - after[row]!)) continue;
      this.before[unit]! += before[row]!;
      this.after[unit]! += after[row]!;
      this.#pairs[unit]!++;
      rows.push(row);
    }
    this.#present = Array.from(this.#pairs.keys()).filter((unit) => this.#pairs[unit]! > 0);
    if (isTail(objective)) this.#sorted = [sorted(before, rows, ofRow), sorted(after, rows, ofRow)];
  }

  get units(): number {
    return this.#present.length;
  }

  /** How often each unit is taken in one draw. */
  draw(random: Random, times: Int32Array): void {
    times.fill(0);
    for (let i = 0; i < this.#present.length; i++) times[this.#present[random.below(this.#present.length)]!]!++;
  }

  /** With each unit so many times, or once. */
  gain(times: Int32Array | undefined): number {
    if (this.#sorted !== undefined) {
      const [before, after] = this.#sorted.map((one) => tailOf(one, times)) as [number, number];
      return gainBetween(this.#objective, before, after);
    }
    let [pairs, before, after] = [0, 0, 0];
    for (const unit of this.#present) {
      const weight = times?.[unit] ?? 1;
      pairs += weight * this.#pairs[unit]!;
      before += weight * this.before[unit]!;
      after += weight * this.after[unit]!;
    }
    return pairs === 0 ? 0 : gainBetween(this.#objective, before / pairs, after / pairs);
  }
}

interface Sorted {
  readonly values: Float64Array;
  readonly units: Int32Array;
}

function sorted(losses: Losses, rows: readonly number[], ofRow: Int32Array): Sorted {
  const order = rows.toSorted((a, b) => losses[a]! - losses[b]!);
  return { values: Float64Array.from(order, (row) => losses[row]!), units: Int32Array.from(order, (r) => ofRow[r]!) };
}

/** The value that 99 % of the weight lies below. */
function tailOf({ values, units }: Sorted, times: Int32Array | undefined): number {
  const weight = (i: number) => times?.[units[i]!] ?? 1;
  let all = 0;
  for (let i = 0; i < values.length; i++) all += weight(i);
  let above = 0.01 * all;
  for (let i = values.length - 1; i >= 0; i--) {
    above -= weight(i);
    if (above < 0) return values[i]!;
  }
  return values[0] ?? NaN;
}
