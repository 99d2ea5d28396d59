import type { Outcomes } from "#sim/result/outcomes.ts";
import type { SimulationResult } from "#sim/simulate.ts";

/** What is reported of one profile on one workload. */
export interface Figures {
  /** Prompt tokens found in the engines' caches over all prompt tokens. */
  readonly hits: number;
  readonly ttftMean: number;
  readonly ttftP50: number;
  readonly ttftP99: number;
  readonly e2eMean: number;
  readonly e2eP50: number;
  readonly e2eP99: number;
  /** Of the requests' own means. */
  readonly tpotMean: number;
  /** Most requests in flight at one endpoint over the mean; 1 is balance. */
  readonly imbalance: number;
  readonly unserved: number;
}

/** Times in microseconds. */
export function figuresOf({ metrics, outcomes, requests }: SimulationResult): Figures {
  const ttft = metrics.ttftMicros["all"];
  const e2e = metrics.e2eMicros["all"];
  return {
    hits: metrics.cacheHitRate.gpu,
    ttftMean: ttft?.mean ?? NaN,
    ttftP50: ttft?.p50 ?? NaN,
    ttftP99: ttft?.p99 ?? NaN,
    e2eMean: e2e?.mean ?? NaN,
    e2eP50: e2e?.p50 ?? NaN,
    e2eP99: e2e?.p99 ?? NaN,
    tpotMean: metrics.tpotMicros["all"]?.mean ?? NaN,
    imbalance: imbalance(outcomes),
    unserved: outcomes.length - requests.completed - requests.length,
  };
}

export const FIGURES_HEAD: readonly string[] = [
  "hits %",
  "TTFT ms mean",
  "p50",
  "p99",
  "E2E s mean",
  "p50",
  "p99",
  "TPOT ms mean",
  "max/mean in flight",
  "not served",
];

/** In the order of FIGURES_HEAD. */
export function figureCells(row: Figures): string[] {
  return [
    (100 * row.hits).toFixed(1),
    ...[row.ttftMean, row.ttftP50, row.ttftP99].map((micros) => (micros / 1000).toFixed(0)),
    ...[row.e2eMean, row.e2eP50, row.e2eP99].map((micros) => (micros / 1e6).toFixed(2)),
    (row.tpotMean / 1000).toFixed(2),
    row.imbalance.toFixed(2),
    String(row.unserved),
  ];
}

/**
 * Most requests in flight at one endpoint over the mean of all, weighted by time; 1 is balance. Moments with fewer
 * requests than endpoints are left out, since they cannot be even.
 */
function imbalance(outcomes: Outcomes): number {
  const events: { at: number; endpoint: number; step: number }[] = [];
  let endpoints = 0;
  for (let row = 0; row < outcomes.length; row++) {
    const endpoint = outcomes.endpoint[row]!;
    const e2e = outcomes.e2e[row]!;
    if (endpoint < 0 || Number.isNaN(e2e)) continue;
    endpoints = Math.max(endpoints, endpoint + 1);
    const at = outcomes.arrivalAt[row]!;
    events.push({ at, endpoint, step: 1 }, { at: at + e2e, endpoint, step: -1 });
  }
  events.sort((a, b) => a.at - b.at || a.step - b.step);
  const inFlight = new Float64Array(endpoints);
  let total = 0;
  let before = 0;
  let weighted = 0;
  let weight = 0;
  for (const { at, endpoint, step } of events) {
    if (total >= endpoints) {
      weighted += ((Math.max(...inFlight) * endpoints) / total) * (at - before);
      weight += at - before;
    }
    before = at;
    inFlight[endpoint]! += step;
    total += step;
  }
  return weight === 0 ? NaN : weighted / weight;
}
