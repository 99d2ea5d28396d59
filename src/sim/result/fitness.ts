import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Metrics } from "./metrics.ts";

/**
 * Figures brought to [0, 1], 1 being best, so that they can be weighed.
 *
 *   throughput     requests/s / (requests/s + 100)
 *   tokens_per_sec tokens/s / (tokens/s + 10,000)
 *   latencies      1 / (1 + milliseconds)              (BLIS's scales)
 *   the others are shares as they are
 */
export const FITNESS_KEYS = [
  "throughput",
  "tokens_per_sec",
  "mean_ttft",
  "p50_ttft",
  "p99_ttft",
  "mean_tpot",
  "p50_tpot",
  "p99_tpot",
  "mean_e2e",
  "p50_e2e",
  "p99_e2e",
  "slo_attainment",
  "jain_fairness",
  "cache_hit_rate",
] as const;
export type FitnessKey = (typeof FITNESS_KEYS)[number];

export type FitnessWeights = Partial<Readonly<Record<FitnessKey, number>>>;

export interface Fitness {
  /** Sum of weight times value. */
  readonly score: number;
  readonly values: Partial<Readonly<Record<FitnessKey, number>>>;
}

/** The weighted sum of a simulation's metrics, and what each of them was. */
export function fitnessOf(metrics: Metrics, weights: FitnessWeights): Fitness {
  const values: Partial<Record<FitnessKey, number>> = {};
  let score = 0;
  for (const key of FITNESS_KEYS) {
    const weight = weights[key];
    if (weight === undefined) continue;
    const value = valueOf(metrics, key);
    values[key] = value;
    score += weight * value;
  }
  return { score, values };
}

function valueOf(metrics: Metrics, key: FitnessKey): number {
  const ttft = metrics.ttftMicros["all"];
  const tpot = metrics.tpotMicros["all"];
  const e2e = metrics.e2eMicros["all"];
  switch (key) {
    case "throughput":
      return metrics.requestsPerSec / (metrics.requestsPerSec + 100);
    case "tokens_per_sec":
      return metrics.tokensPerSec / (metrics.tokensPerSec + 10_000);
    case "mean_ttft":
      return latency(ttft?.mean);
    case "p50_ttft":
      return latency(ttft?.p50);
    case "p99_ttft":
      return latency(ttft?.p99);
    case "mean_tpot":
      return latency(tpot?.mean);
    case "p50_tpot":
      return latency(tpot?.p50);
    case "p99_tpot":
      return latency(tpot?.p99);
    case "mean_e2e":
      return latency(e2e?.mean);
    case "p50_e2e":
      return latency(e2e?.p50);
    case "p99_e2e":
      return latency(e2e?.p99);
    case "slo_attainment":
      return metrics.sloAttainmentAll ?? 0;
    case "jain_fairness":
      return metrics.jainFairnessIndex;
    case "cache_hit_rate":
      return metrics.cacheHitRate.gpu;
  }
}

function latency(micros: number | undefined): number {
  return micros === undefined ? 0 : 1 / (1 + micros / MICROS_PER_MILLI);
}
