/** Buckets per power of two: a percentile is off by less than 1 / 128. */
const STEPS = 128;
const POWERS_MAX = 53;

export interface QuantileFigures {
  readonly count: number;
  readonly mean: number;
  readonly min: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Percentiles of any number of values in fixed memory: exact below 128, within 0.8 % above. Values from 0 to 2^53. */
export class Quantiles {
  readonly #counts = new Float64Array((POWERS_MAX + 1) * STEPS);
  #count = 0;
  #sum = 0;
  #min = Infinity;
  #max = -Infinity;

  /** NaN is left out. */
  add(value: number): void {
    if (Number.isNaN(value)) return;
    this.#counts[bucketOf(value)]!++;
    this.#count++;
    this.#sum += value;
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
  }

  figures(): QuantileFigures | undefined {
    if (this.#count === 0) return undefined;
    return {
      count: this.#count,
      mean: this.#sum / this.#count,
      min: this.#min,
      p50: this.#at(0.5),
      p90: this.#at(0.9),
      p99: this.#at(0.99),
      max: this.#max,
    };
  }

  /** The value with `share` of all values at or below it. */
  #at(share: number): number {
    const rank = Math.ceil(share * this.#count);
    let below = 0;
    for (let bucket = 0; bucket < this.#counts.length; bucket++) {
      below += this.#counts[bucket]!;
      if (below >= rank) return Math.min(this.#max, Math.max(this.#min, middleOf(bucket)));
    }
    return this.#max;
  }
}

function bucketOf(value: number): number {
  const whole = Math.max(0, Math.round(value));
  let power = 0;
  let scaled = whole;
  while (scaled >= 2 * STEPS) {
    scaled = Math.floor(scaled / 2);
    power++;
  }
  return scaled < STEPS ? scaled : (power + 1) * STEPS + (scaled - STEPS);
}

function middleOf(bucket: number): number {
  if (bucket < STEPS) return bucket;
  const power = Math.floor(bucket / STEPS) - 1;
  return ((bucket % STEPS) + STEPS + (power === 0 ? 0 : 0.5)) * 2 ** power;
}
