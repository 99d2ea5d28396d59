import type { Micros } from "../../base/units.ts";
import { type RolloutOutcome, TIME_METRICS, type TimeFigure, type TimeMetric } from "./outcome.ts";
import { type SavedHistogram, TimeHistogram } from "./time-histogram.ts";

/** Endpoints that are counted one by one; requests of others count for none. */
const ENDPOINTS_MAX = 4_096;

/** Of the measured requests: fewer predictions may be of another traffic than what was measured. */
const PREDICTED_SHARE_MIN = 0.9;

export interface SavedTally {
  readonly counts: Counts;
  readonly halves?: readonly number[];
  /** Absent where nothing was predicted, and of what is no window's. */
  readonly expected?: Readonly<Partial<Record<TimeMetric, SavedHistogram>>>;
  readonly endpoints: readonly (readonly [string, number])[];
  readonly times: Readonly<Record<TimeMetric, SavedHistogram>>;
  readonly predicted: Readonly<Record<TimeMetric, readonly [number, number]>>;
}

interface Counts {
  requests: number;
  failed: number;
  refused: number;
  /** Of requests whose cached tokens are known. */
  promptTokens: number;
  cachedTokens: number;
  /** Requests of which it is known whether they got what they are promised, and those that did. */
  promised: number;
  met: number;
  /** Requests that were ranked among those that ended beside them, and those that were among the slowest. */
  ranked: number;
  slow: number;
}

const NO_COUNTS: Readonly<Counts> = {
  requests: 0,
  failed: 0,
  refused: 0,
  promptTokens: 0,
  cachedTokens: 0,
  promised: 0,
  met: 0,
  ranked: 0,
  slow: 0,
};

/** What one arm did: in a window, or in all. */
export class ArmTally {
  readonly counts: Counts;
  readonly #endpoints: Map<string, number>;
  readonly #times: Readonly<Record<TimeMetric, TimeHistogram>>;
  /** Of each time, the sum of logarithms and the count of the earlier and the later half. */
  readonly #halves: number[];
  /** Of a window: what was predicted of requests whose time was measured. */
  readonly #expected: Partial<Record<TimeMetric, TimeHistogram>> = {};
  /** Sum and count of predictions of requests whose time was measured. */
  readonly #predicted: Record<TimeMetric, [number, number]>;

  constructor(saved?: SavedTally) {
    this.#halves = [...(saved?.halves ?? Array.from({ length: 4 * TIME_METRICS.length }, () => 0))];
    // What an earlier version saved has fewer counts.
    this.counts = { ...NO_COUNTS, ...saved?.counts };
    this.#endpoints = new Map(saved?.endpoints);
    const times = (metric: TimeMetric) => new TimeHistogram(saved?.times[metric]);
    this.#times = { ttft: times("ttft"), tpot: times("tpot"), e2e: times("e2e") };
    for (const metric of TIME_METRICS) {
      const expected = saved?.expected?.[metric];
      if (expected !== undefined) this.#expected[metric] = new TimeHistogram(expected);
    }
    const predicted = (metric: TimeMetric): [number, number] => [...(saved?.predicted[metric] ?? ([0, 0] as const))];
    this.#predicted = { ttft: predicted("ttft"), tpot: predicted("tpot"), e2e: predicted("e2e") };
  }

  add({ status, times, predicted, slo, endpoint, promptTokens, cachedTokens }: RolloutOutcome): void {
    const { counts } = this;
    counts.requests++;
    if (status === "failed") counts.failed++;
    if (status === "refused") counts.refused++;
    if (cachedTokens !== undefined) {
      counts.promptTokens += promptTokens;
      counts.cachedTokens += cachedTokens;
    }
    if (slo !== undefined) counts.promised++;
    if (slo === "met") counts.met++;
    const onEndpoint = this.#endpoints.get(endpoint);
    if (endpoint !== "" && (onEndpoint !== undefined || this.#endpoints.size < ENDPOINTS_MAX)) {
      this.#endpoints.set(endpoint, (onEndpoint ?? 0) + 1);
    }
    for (const metric of TIME_METRICS) {
      const time = times[metric];
      if (time === undefined) continue;
      this.#times[metric].add(time);
      const expected = predicted?.[metric];
      if (expected === undefined) continue;
      this.#predicted[metric][0] += expected;
      this.#predicted[metric][1]++;
    }
  }

  addRanked(isSlow: boolean): void {
    this.counts.ranked++;
    if (isSlow) this.counts.slow++;
  }

  /**
   * One that has been added to the tally of a window: in which half of it it came, and what was predicted of it. Halves have
   * logarithms: answers differ by orders of magnitude, and what is left of the arm before is a part of each.
   */
  addInWindow({ times, predicted }: RolloutOutcome, isLater: boolean): void {
    TIME_METRICS.forEach((metric, i) => {
      const [time, expected] = [times[metric], predicted?.[metric]];
      if (time !== undefined && expected !== undefined) (this.#expected[metric] ??= new TimeHistogram()).add(expected);
      if (time === undefined || time <= 0) return;
      const place = 4 * i + (isLater ? 2 : 0);
      this.#halves[place]! += Math.log(time);
      this.#halves[place + 1]!++;
    });
  }

  /** Mean logarithm of a time in the later half less that in the earlier; NaN where one has none. */
  trend(metric: TimeMetric): number {
    const from = 4 * TIME_METRICS.indexOf(metric);
    const [early, earlies, late, lates] = this.#halves.slice(from, from + 4) as [number, number, number, number];
    return late / lates - early / earlies;
  }

  merge(other: ArmTally): void {
    other.#halves.forEach((value, i) => (this.#halves[i]! += value));
    for (const key of Object.keys(this.counts) as (keyof Counts)[]) this.counts[key] += other.counts[key];
    for (const [endpoint, count] of other.#endpoints) {
      const known = this.#endpoints.get(endpoint);
      if (known !== undefined || this.#endpoints.size < ENDPOINTS_MAX)
        this.#endpoints.set(endpoint, (known ?? 0) + count);
    }
    for (const metric of TIME_METRICS) {
      this.#times[metric].merge(other.#times[metric]);
      const expected = other.#expected[metric];
      if (expected !== undefined) (this.#expected[metric] ??= new TimeHistogram()).merge(expected);
      this.#predicted[metric][0] += other.#predicted[metric][0];
      this.#predicted[metric][1] += other.#predicted[metric][1];
    }
  }

  samples(metric: TimeMetric): number {
    return this.#times[metric].count;
  }

  /** Microseconds; NaN without samples. */
  time(metric: TimeMetric, figure: TimeFigure): number {
    return this.#times[metric].figure(figure);
  }

  /** The value that a share of the times does not exceed, microseconds; NaN without samples. */
  quantile(metric: TimeMetric, q: number): number {
    return this.#times[metric].quantile(q);
  }

  /** How many took longer. */
  above(metric: TimeMetric, micros: Micros): number {
    return this.#times[metric].above(micros);
  }

  times(metric: TimeMetric): TimeHistogram {
    return this.#times[metric];
  }

  addTimesTo(other: TimeHistogram, metric: TimeMetric): void {
    other.merge(this.#times[metric]);
  }

  /** A figure of what was predicted in a window, microseconds; undefined unless nearly every measured request has a prediction. */
  expected(metric: TimeMetric, figure: TimeFigure): number | undefined {
    const times = this.#expected[metric];
    return times !== undefined && times.count >= PREDICTED_SHARE_MIN * this.#times[metric].count
      ? times.figure(figure)
      : undefined;
  }

  /** Mean of what was predicted, microseconds; undefined unless nearly every measured request has a prediction. */
  predicted(metric: TimeMetric): number | undefined {
    const [sum, count] = this.#predicted[metric];
    return count > 0 && count >= PREDICTED_SHARE_MIN * this.#times[metric].count ? sum / count : undefined;
  }

  /** Share of requests whose answer an endpoint broke; NaN without requests. */
  get errorRate(): number {
    return this.counts.failed / this.counts.requests;
  }

  get refusedRate(): number {
    return this.counts.refused / this.counts.requests;
  }

  /** Share of the requests with targets that got them; NaN without any. */
  get goodput(): number {
    return this.counts.met / this.counts.promised;
  }

  /** Share of prompt tokens that were found in a cache; NaN where no engine reports it. */
  get hitRatio(): number {
    return this.counts.cachedTokens / this.counts.promptTokens;
  }

  /** Requests of the busiest endpoint over the mean of those that had any: 1 is even. NaN without. */
  get imbalance(): number {
    const counts = [...this.#endpoints.values()];
    return (Math.max(...counts) * counts.length) / counts.reduce((sum, count) => sum + count, 0);
  }

  saved(): SavedTally {
    const { ttft, tpot, e2e } = this.#times;
    const predicted = this.#predicted;
    const expected = TIME_METRICS.flatMap((metric) => {
      const times = this.#expected[metric];
      return times === undefined ? [] : [[metric, times.saved()] as const];
    });
    return {
      counts: { ...this.counts },
      ...(this.#halves.some((value) => value !== 0) && { halves: [...this.#halves] }),
      ...(expected.length > 0 && { expected: Object.fromEntries(expected) }),
      endpoints: [...this.#endpoints],
      times: { ttft: ttft.saved(), tpot: tpot.saved(), e2e: e2e.saved() },
      predicted: { ttft: [...predicted.ttft], tpot: [...predicted.tpot], e2e: [...predicted.e2e] },
    };
  }
}
