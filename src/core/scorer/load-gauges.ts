import { runningRequests, waitingRequests } from "../endpoint/gauge.ts";
import type { ParameterDescription } from "../plugin/parameter.ts";
import { free, GAUGES, gaugeScorer, highest, inverse } from "./gauge.ts";
import { lowerIsBetter } from "./min-max.ts";

// Scorers that are one gauge and a scale, each under the name and with the parameters that its source gives it.

/** What a scorer takes an endpoint's load to be. */
const MEASURE = {
  type: "choice",
  default: "requests",
  values: ["requests", "scraped-and-own"],
  meaning: "load: every request once, or queue and batch as scraped plus our own in flight (BLIS)",
} as const;

const full = <const M extends string>(value: number, meaning: M) =>
  ({ type: "number", default: value, min: 1, meaning }) as const satisfies ParameterDescription;

/** score = (max - load) / (max - min), 1 where all are equal */
export const queueDepth = gaugeScorer({
  summary:
    "effective load (requests there, not the queue alone), scaled between the least and the most loaded candidate",
  reads: GAUGES.requests.reads,
  source: "BLIS, Composable Scorer Framework",
  parameters: {},
  value: () => GAUGES.requests.read,
  scale: () => lowerIsBetter,
});

/** score = 1 / (1 + load): absolute differences count */
export const loadBalance = gaugeScorer({
  summary: "inverse of the requests there",
  reads: GAUGES.requests.reads,
  source: "BLIS, Composable Scorer Framework",
  parameters: { measure: MEASURE },
  value: ({ measure }) => GAUGES[measure].read,
  scale: () => inverse,
});

/** score = 1 - share of KV blocks in use */
export const kvUtilization = gaugeScorer({
  summary: "share of the endpoint's KV blocks that is free",
  reads: GAUGES["kv-used"].reads,
  source: "BLIS, Composable Scorer Framework; llm-d kv-cache-utilization-scorer",
  parameters: {},
  value: () => GAUGES["kv-used"].read,
  scale: () => free(1),
});

/** score = (load - min) / (max - min): the worst that a policy can do, as a lower bound for experiments */
export const mostLoaded = gaugeScorer({
  summary: "requests there, the most loaded scoring best (a lower bound for experiments)",
  reads: GAUGES.requests.reads,
  source: "BLIS always-busiest",
  parameters: { measure: MEASURE },
  value: ({ measure }) => GAUGES[measure].read,
  scale: () => highest,
});

/** score = (max - used) / (max - min), 1 where all are equal */
export const leastKvCache = gaugeScorer({
  summary: "KV blocks in use there, scaled between the candidates",
  reads: GAUGES["kv-used"].reads,
  source: "AIBrix least-kv-cache, without the CPU cache metric that vLLM no longer has",
  parameters: {},
  value: () => GAUGES["kv-used"].read,
  scale: () => lowerIsBetter,
});

/** score = (max - count) / (max - min), 1 where all are equal */
export const leastRequest = gaugeScorer({
  summary: "our requests in flight there, scaled between the candidates",
  reads: GAUGES["own-requests"].reads,
  source: "AIBrix least-request; B3 load_only",
  parameters: {},
  value: () => GAUGES["own-requests"].read,
  scale: () => lowerIsBetter,
});

/** score = (max - waiting) / (max - min), 1 where all are equal */
export const queue = gaugeScorer({
  summary: "requests that wait there, scaled between the candidates",
  reads: GAUGES.waiting.reads,
  source: "llm-d queue-scorer",
  parameters: {},
  value: () => GAUGES.waiting.read,
  scale: () => lowerIsBetter,
});

/** score = (max - running) / (max - min), 1 where all are equal */
export const runningRequestsScorer = gaugeScorer({
  summary: "requests in the batch there, scaled between the candidates",
  reads: GAUGES.running.reads,
  source: "llm-d running-requests-size-scorer",
  parameters: {},
  value: () => GAUGES.running.read,
  scale: () => lowerIsBetter,
});

/** score = 1 - min(waiting, full) / full */
export const queueHeadroom = gaugeScorer({
  summary: "share of a queue length that is free",
  reads: GAUGES.waiting.reads,
  source: "Cognitora's code (QUEUE_FULL)",
  parameters: { full: full(64, "waiting requests that count as full") },
  value: () => GAUGES.waiting.read,
  scale: ({ full }) => free(full),
});

/** score = 0.5 * (1 - min(waiting, threshold) / threshold) */
export const loadAware = gaugeScorer({
  summary: "half of the share of a queue threshold that is free",
  reads: GAUGES.waiting.reads,
  source: "llm-d load-aware-scorer",
  parameters: { threshold: full(128, "waiting requests that count as full") },
  value: () => GAUGES.waiting.read,
  scale: ({ threshold }) => free(threshold, 0.5),
});

/** score = 1 - min(t, threshold) / threshold,  t = queued prefill tokens + tokens of this prompt not held there */
export const tokenLoad = gaugeScorer({
  summary: "prompt tokens owed there and by this request, on an absolute scale",
  reads: GAUGES["prompt-tokens"].reads,
  source: "llm-d token-load-scorer with its inflight-load-producer",
  parameters: { queueThresholdTokens: full(4_194_304, "tokens that count as full") },
  value: () => GAUGES["prompt-tokens"].read,
  scale: ({ queueThresholdTokens }) => free(queueThresholdTokens),
});

/** cost = waitingWeight * waiting + running, scaled between the candidates: as vLLM balances its data-parallel ranks */
export const vllmLoad = gaugeScorer({
  summary: "4 * waiting + running, scaled between the candidates",
  reads: GAUGES.waiting.reads,
  source: "vLLM's data-parallel load balancing",
  parameters: {
    waitingWeight: { type: "number", default: 4, min: 0, meaning: "what a waiting request counts" },
  },
  value:
    ({ waitingWeight }) =>
    (candidates, _request, into) => {
      for (let i = 0; i < candidates.length; i++)
        into[i] = waitingWeight * waitingRequests(candidates[i]!) + runningRequests(candidates[i]!);
    },
  scale: () => lowerIsBetter,
});
