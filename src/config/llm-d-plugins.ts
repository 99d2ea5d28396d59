import type { ParameterValue } from "#core/plugin/spec.ts";

/** What one llm-d plugin type is here. */
export interface LlmDPlugin {
  readonly kind: "filter" | "scorer" | "picker";
  readonly plugin: string;
  /** llm-d's parameter name to ours; a name with a point is a key of a mapping. */
  readonly names: Readonly<Record<string, string>>;
  /** Parameters that llm-d has by nature and that ours has to be given. */
  readonly fixed?: Readonly<Record<string, ParameterValue>>;
  /** Parameters that are accepted with one value only, since ours knows no other. */
  readonly only?: Readonly<Record<string, ParameterValue>>;
  /** Parameters that name another plugin, which is built in here, or that llm-d itself ignores. */
  readonly silent?: readonly string[];
}

const PRODUCERS = ["prefixMatchInfoProducerName", "inFlightLoadProducerName"];
const SESSION_SOURCES = ["sessionIdConfig.sources", "sessionIdConfig.evictionSweepSeconds"];
const DECODE_ROLES = "decode,prefill-decode,both,encode-prefill-decode";
const PREFILL_ROLES = "prefill,encode-prefill,prefill-decode,both,encode-prefill-decode";

/** llm-d's scheduling plugins by type, as llm-d-router names them and their parameters. */
export const LLM_D_PLUGINS: Readonly<Record<string, LlmDPlugin>> = {
  "queue-scorer": { kind: "scorer", plugin: "queue", names: {} },
  "running-requests-size-scorer": { kind: "scorer", plugin: "running-requests", names: {} },
  "kv-cache-utilization-scorer": { kind: "scorer", plugin: "kv-utilization", names: {} },
  "prefix-cache-scorer": {
    kind: "scorer",
    plugin: "prefix-affinity",
    names: { matchLengthWeight: "matchLengthWeight", matchLengthScaleTokens: "matchLengthScaleTokens" },
    silent: PRODUCERS,
  },
  "load-aware-scorer": { kind: "scorer", plugin: "load-aware", names: { threshold: "threshold" } },
  "active-request-scorer": {
    kind: "scorer",
    plugin: "active-request",
    names: { idleThreshold: "idleThreshold", maxBusyScore: "maxBusyScore" },
    silent: [...PRODUCERS, "requestTimeout"],
  },
  "token-load-scorer": {
    kind: "scorer",
    plugin: "token-load",
    names: { queueThresholdTokens: "queueThresholdTokens" },
    silent: PRODUCERS,
  },
  "no-hit-lru-scorer": { kind: "scorer", plugin: "no-hit-lru", names: { lruSize: "lruSize" }, silent: PRODUCERS },
  "lora-affinity-scorer": { kind: "scorer", plugin: "lora-affinity", names: {} },
  "session-affinity-scorer": {
    kind: "scorer",
    plugin: "session-affinity",
    names: { "sessionIdConfig.evictionTtlSeconds": "idleSecondsMax" },
    fixed: { idleSecondsMax: 300 },
    only: { strategy: "session_id" },
    silent: SESSION_SOURCES,
  },
  "latency-scorer": {
    kind: "scorer",
    plugin: "latency-headroom",
    names: { ttftWeight: "ttftWeight", tpotWeight: "tpotWeight", headroomSelectionStrategy: "strategy" },
  },
  "prefix-cache-affinity-filter": {
    kind: "filter",
    plugin: "prefix-affinity-gate",
    names: {
      affinityThreshold: "affinityThreshold",
      explorationProbability: "explorationProbability",
      maxTTFTPenaltyMs: "maxTtftPenaltyMillis",
      peakPrefillThroughput: "peakPrefillTokensPerSecond",
    },
    only: { ttftSource: "prefillThroughput" },
    silent: PRODUCERS,
  },
  "session-affinity-filter": {
    kind: "filter",
    plugin: "session-pin",
    names: { "sessionIdConfig.evictionTtlSeconds": "idleSecondsMax" },
    only: { strategy: "session_id" },
    silent: SESSION_SOURCES,
  },
  "decode-filter": { kind: "filter", plugin: "label", names: {}, fixed: { values: DECODE_ROLES } },
  "prefill-filter": {
    kind: "filter",
    plugin: "label",
    names: {},
    fixed: { values: PREFILL_ROLES, allowMissing: false },
  },
  "by-label": {
    kind: "filter",
    plugin: "label",
    names: { label: "key", validValues: "values", allowsNoLabel: "allowMissing" },
  },
  "utilization-detector": {
    kind: "filter",
    plugin: "utilization-saturation",
    names: { queueDepthThreshold: "queueDepthMax", kvCacheUtilThreshold: "kvUtilizationMax", headroom: "headroom" },
    silent: ["metricsStalenessThreshold"],
  },
  "concurrency-detector": {
    kind: "filter",
    plugin: "concurrency-saturation",
    names: {
      concurrencyMode: "mode",
      maxConcurrency: "requestsMax",
      maxTokenConcurrency: "tokensMax",
      headroom: "headroom",
    },
  },
  "max-score-picker": {
    kind: "picker",
    plugin: "max-score",
    names: {},
    fixed: { tieBreak: "random" },
    only: { maxNumOfEndpoints: 1 },
  },
  "random-picker": { kind: "picker", plugin: "random", names: {}, only: { maxNumOfEndpoints: 1 } },
  "weighted-random-picker": { kind: "picker", plugin: "weighted-random", names: {}, only: { maxNumOfEndpoints: 1 } },
};

/** Plugins whose work is done elsewhere here, and where it is configured. */
export const LLM_D_ELSEWHERE: Readonly<Record<string, string>> = {
  "token-producer": "tokenizer.*",
  "approx-prefix-cache-producer": "prefix.*",
  "inflight-load-producer": "the ledger",
  "session-id-producer": "clients.sessionHeaders",
  "single-profile-handler": "one profile",
  "metrics-data-source": "scrape.*",
  "core-metrics-extractor": "scrape.*",
  "openai-parser": "the gateway",
  "anthropic-parser": "the gateway",
  "vllmhttp-parser": "the gateway",
  "passthrough-parser": "the gateway",
  "precise-prefix-cache-producer": "kvEvents.*",
  "endpoint-notification-source": "kvEvents.*",
  "data-parallel-profile-handler": "discovery.dataParallelRanks, or a pool's target ports",
  "dcgm-data-source": "power.exporters",
  "dcgm-extractor": "power.exporters",
  // Of flow control, which is no part of a routing profile; what stands in its place decides otherwise.
  "probabilistic-admitter": "admission.shedAt, without chance",
  "soft-reflective-ceiling-policy": "admission.classes, strictly in order",
  "program-aware-fairness": "admission.queue.fairness, by what tenants were given",
  "request-attribute-reporter": "metrics and records, which are fixed",
};

/** Plugins of llm-d without a counterpart here, and what that means. */
export const LLM_D_MISSING: Readonly<Record<string, string>> = {
  "burst-prefix-cache-producer":
    "requests are routed as they come, not gathered for a window; what one leaves is expected by the next at once, so " +
    "prefix-cache-scorer without this producer keeps a burst together",
  "mm-embeddings-cache-producer":
    "what is cached of images and sound is not known; without it and its scorer prefixes decide",
  "mm-embeddings-cache-scorer": "what is cached of images and sound is not known",
  "encode-filter":
    "encoding is not routed apart: without this phase engines that compute prompts encode images themselves",
  "always-disagg-multimodal-decider": "encoding is not routed apart",
  "endpoint-attribute-filter":
    "scorers and filters read the signals of their own catalog, no attributes by name; GPU use of DCGM is part of the scorer " +
    "utilization",
  "endpoint-attribute-scorer":
    "scorers and filters read the signals of their own catalog, no attributes by name; GPU use of DCGM is part of the scorer " +
    "utilization",
  "topology-extractor":
    "the places of endpoints are labels; pairLabel of a profile's roles pairs them, and does not rank them",
  "topology-affinity-filter":
    "no phase sees which endpoint the other one chose; pairLabel of a profile's roles is its minAffinity",
  "topology-affinity-scorer": "no phase sees which endpoint the other one chose, so that near ones are not ranked",
};
