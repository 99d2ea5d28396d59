import { priorFor, reach } from "./confidence-sequence.ts";
import type { TimeFigure } from "./outcome.ts";
import { shareNeeded } from "./share-bound.ts";

export const QUANTILES: Readonly<Record<Exclude<TimeFigure, "mean">, number>> = { p50: 0.5, p90: 0.9, p99: 0.99 };

/** Linear buckets in each doubling: a quantile is within 1 / 256 of a sample. */
const PER_DOUBLING = 128;
/** Leading zeros, of 32 bits, of a value below the first doubling. */
const SHORT_ZEROS = Math.clz32(PER_DOUBLING);

export interface SavedHistogram {
  readonly count: number;
  readonly sum: number;
  /** Bucket and count, in turn; an earlier version saved them in any order. */
  readonly buckets: readonly number[];
}

/**
 * How whole microseconds are distributed, in a bounded number of buckets: up to 256 each value has its own, above them
 * each doubling has 128. The mean is exact. Buckets are in order, since they are read at every look, by every limit.
 */
export class TimeHistogram {
  count = 0;
  sum = 0;
  #buckets: number[] = [];
  /** How many are in each of them. */
  #counts: number[] = [];

  constructor(saved?: SavedHistogram) {
    if (saved === undefined) return;
    this.count = saved.count;
    this.sum = saved.sum;
    const pairs = Array.from({ length: saved.buckets.length / 2 }, (_, i) => 2 * i);
    pairs.sort((one, other) => saved.buckets[one]! - saved.buckets[other]!);
    this.#buckets = pairs.map((at) => saved.buckets[at]!);
    this.#counts = pairs.map((at) => saved.buckets[at + 1]!);
  }

  /** A value of at least 0. */
  add(value: number): void {
    this.count++;
    this.sum += value;
    const bucket = bucketOf(value);
    const at = this.#from(bucket);
    if (this.#buckets[at] === bucket) this.#counts[at]!++;
    else {
      this.#buckets.splice(at, 0, bucket);
      this.#counts.splice(at, 0, 1);
    }
  }

  merge(other: TimeHistogram): void {
    this.count += other.count;
    this.sum += other.sum;
    const [buckets, counts]: number[][] = [[], []];
    let own = 0;
    for (const [i, bucket] of other.#buckets.entries()) {
      for (; own < this.#buckets.length && this.#buckets[own]! < bucket; own++) {
        buckets!.push(this.#buckets[own]!);
        counts!.push(this.#counts[own]!);
      }
      const known = this.#buckets[own] === bucket ? this.#counts[own++]! : 0;
      buckets!.push(bucket);
      counts!.push(known + other.#counts[i]!);
    }
    this.#buckets = buckets!.concat(this.#buckets.slice(own));
    this.#counts = counts!.concat(this.#counts.slice(own));
  }

  /** NaN without samples. */
  get mean(): number {
    return this.sum / this.count;
  }

  /** The middle of the bucket of the smallest sample that at least the share `q` does not exceed; NaN without samples. */
  quantile(q: number): number {
    const rank = Math.max(1, Math.ceil(q * this.count));
    const [buckets, counts] = [this.#buckets, this.#counts];
    if (q < 0.5) {
      let upTo = 0;
      for (let i = 0; i < buckets.length; i++) {
        upTo += counts[i]!;
        if (upTo >= rank) return middleOf(buckets[i]!);
      }
      return NaN;
    }
    let below = this.count;
    for (let i = buckets.length - 1; i >= 0; i--) {
      below -= counts[i]!;
      if (below < rank) return middleOf(buckets[i]!);
    }
    return NaN;
  }

  /** How many are above a value, to within its bucket. */
  above(value: number): number {
    const own = bucketOf(value);
    const least = middleOf(own) > value ? own : own + 1;
    let above = 0;
    for (let i = this.#buckets.length - 1; i >= 0 && this.#buckets[i]! >= least; i--) above += this.#counts[i]!;
    return above;
  }

  /** Microseconds; NaN without samples. */
  figure(of: TimeFigure): number {
    return of === "mean" ? this.mean : this.quantile(QUANTILES[of]);
  }

  /**
   * What a figure is at least, at every look together, where the values count as `count` independent ones: of a
   * quantile, the value that too many are above; of the mean, the lower end of its interval. NaN where too little is
   * known.
   */
  atLeast(of: TimeFigure, count: number, evidence: number): number {
    if (of !== "mean") {
      const share = shareNeeded(count, 1 - QUANTILES[of], evidence);
      return share > 1 ? NaN : this.quantile(Math.max(0, 1 - share));
    }
    const level = Math.exp(-evidence);
    const half = reach(
      { count, mean: 0, deviation: this.#deviation, degrees: count - 1 },
      level,
      priorFor(count, level),
    );
    return Number.isFinite(half) ? this.mean - half : NaN;
  }

  get #deviation(): number {
    let squares = 0;
    for (const [i, bucket] of this.#buckets.entries())
      squares += this.#counts[i]! * (middleOf(bucket) - this.mean) ** 2;
    return Math.sqrt(squares / Math.max(1, this.count - 1));
  }

  saved(): SavedHistogram {
    const buckets = this.#buckets.flatMap((bucket, i) => [bucket, this.#counts[i]!]);
    return { count: this.count, sum: this.sum, buckets };
  }

  /** Where a bucket is, or is to be put in. */
  #from(bucket: number): number {
    let [low, high] = [0, this.#buckets.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#buckets[middle]! < bucket) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function bucketOf(value: number): number {
  let mantissa = Math.max(0, Math.floor(value));
  if (mantissa < 2 ** 31) {
    const doublings = Math.max(0, SHORT_ZEROS - Math.clz32(mantissa));
    return doublings * PER_DOUBLING + (mantissa >>> doublings);
  }
  let doublings = 0;
  while (mantissa >= 2 * PER_DOUBLING) {
    mantissa = Math.floor(mantissa / 2);
    doublings++;
  }
  return doublings * PER_DOUBLING + mantissa;
}

function middleOf(bucket: number): number {
  if (bucket < 2 * PER_DOUBLING) return bucket;
  const doublings = Math.floor(bucket / PER_DOUBLING) - 1;
  const width = 2 ** doublings;
  return (bucket - doublings * PER_DOUBLING) * width + (width - 1) / 2;
}
