import { priorFor, reach } from "./confidence-sequence.ts";
import type { TimeFigure } from "./outcome.ts";
import { shareNeeded } from "./share-bound.ts";

export const QUANTILES: Readonly<Record<Exclude<TimeFigure, "mean">, number>> = { p50: 0.5, p90: 0.9, p99: 0.99 };

/** Linear buckets in each doubling: a quantile is within 1 / 256 of a sample. */
const PER_DOUBLING = 128;

export interface SavedHistogram {
  readonly count: number;
  readonly sum: number;
  /** Bucket and count, in turn. */
  readonly buckets: readonly number[];
}

/**
 * How whole microseconds are distributed, in a bounded number of buckets: up to 256 each value has its own, above them
 * each doubling has 128. The mean is exact.
 */
export class TimeHistogram {
  count = 0;
  sum = 0;
  readonly #buckets = new Map<number, number>();
  /** Buckets in order; undefined since there is another one. */
  #order: Uint32Array | undefined;

  constructor(saved?: SavedHistogram) {
    if (saved === undefined) return;
    this.count = saved.count;
    this.sum = saved.sum;
    for (let i = 0; i < saved.buckets.length; i += 2) this.#buckets.set(saved.buckets[i]!, saved.buckets[i + 1]!);
  }

  /** A value of at least 0. */
  add(value: number): void {
    this.count++;
    this.sum += value;
    const bucket = bucketOf(value);
    const known = this.#buckets.get(bucket);
    if (known === undefined) this.#order = undefined;
    this.#buckets.set(bucket, (known ?? 0) + 1);
  }

  merge(other: TimeHistogram): void {
    this.count += other.count;
    this.sum += other.sum;
    this.#order = undefined;
    for (const [bucket, count] of other.#buckets) this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + count);
  }

  /** NaN without samples. */
  get mean(): number {
    return this.sum / this.count;
  }

  /** The middle of the bucket of the smallest sample that at least the share `q` does not exceed; NaN without samples. */
  quantile(q: number): number {
    const rank = Math.max(1, Math.ceil(q * this.count));
    this.#order ??= Uint32Array.from(this.#buckets.keys()).sort();
    const order = this.#order;
    if (q < 0.5) {
      let upTo = 0;
      for (const bucket of order) {
        upTo += this.#buckets.get(bucket)!;
        if (upTo >= rank) return middleOf(bucket);
      }
      return NaN;
    }
    let below = this.count;
    for (let i = order.length - 1; i >= 0; i--) {
      below -= this.#buckets.get(order[i]!)!;
      if (below < rank) return middleOf(order[i]!);
    }
    return NaN;
  }

  /** How many are above a value, to within its bucket. */
  above(value: number): number {
    const own = bucketOf(value);
    const least = middleOf(own) > value ? own : own + 1;
    let above = 0;
    for (const [bucket, count] of this.#buckets) if (bucket >= least) above += count;
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
    for (const [bucket, count] of this.#buckets) squares += count * (middleOf(bucket) - this.mean) ** 2;
    return Math.sqrt(squares / Math.max(1, this.count - 1));
  }

  saved(): SavedHistogram {
    return { count: this.count, sum: this.sum, buckets: [...this.#buckets].flat() };
  }
}

function bucketOf(value: number): number {
  let mantissa = Math.max(0, Math.floor(value));
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
