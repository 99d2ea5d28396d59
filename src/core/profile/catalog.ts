import { boundedLoad } from "../filter/bounded-load.ts";
import { concurrencySaturation } from "../filter/concurrency-saturation.ts";
import { hotspotDetector } from "../filter/hotspot-detector.ts";
import { imbalance } from "../filter/imbalance.ts";
import { imbalanceGate } from "../filter/imbalance-gate.ts";
import { label } from "../filter/label.ts";
import { loadThreshold } from "../filter/load-threshold.ts";
import { powerOfTwo } from "../filter/power-of-two.ts";
import { prefixAffinityGate } from "../filter/prefix-affinity-gate.ts";
import { prefixMatch } from "../filter/prefix-match.ts";
import { sessionPin } from "../filter/session-pin.ts";
import { sloHeadroom as sloHeadroomFilter } from "../filter/slo-headroom.ts";
import { utilizationSaturation } from "../filter/utilization-saturation.ts";
import { warmSession } from "../filter/warm-session.ts";
import { maxScore } from "../picker/max-score.ts";
import { randomPicker } from "../picker/random.ts";
import { roundRobin } from "../picker/round-robin.ts";
import { softmax } from "../picker/softmax.ts";
import { weightedRandom } from "../picker/weighted-random.ts";
import { activeRequest } from "../scorer/active-request.ts";
import { addedLatency } from "../scorer/added-latency.ts";
import { capacity } from "../scorer/capacity.ts";
import { consistentHash } from "../scorer/consistent-hash.ts";
import { dynamoCost } from "../scorer/dynamo-cost.ts";
import { gauge } from "../scorer/gauge.ts";
import {
  kvUtilization,
  leastKvCache,
  leastRequest,
  loadAware,
  loadBalance,
  mostLoaded,
  queue,
  queueDepth,
  queueHeadroom,
  runningRequestsScorer,
  tokenLoad,
  vllmLoad,
} from "../scorer/load-gauges.ts";
import { latencyHeadroom } from "../scorer/latency-headroom.ts";
import { leastLatency } from "../scorer/least-latency.ts";
import { lmetric } from "../scorer/lmetric.ts";
import { loraAffinity } from "../scorer/lora-affinity.ts";
import { noHitLru } from "../scorer/no-hit-lru.ts";
import { power } from "../scorer/power.ts";
import { prefixOracle } from "../scorer/prefix-oracle.ts";
import { predictedLatency } from "../scorer/predicted-latency.ts";
import { cacheHitRate } from "../scorer/cache-hit-rate.ts";
import { precisePrefixCache } from "../scorer/precise-prefix-cache.ts";
import { prefixAffinity } from "../scorer/prefix-affinity.ts";
import { prefixHeld } from "../scorer/prefix-held.ts";
import { sessionAffinity } from "../scorer/session-affinity.ts";
import { sloHeadroom } from "../scorer/slo-headroom.ts";
import { throughput } from "../scorer/throughput.ts";
import { utilization } from "../scorer/utilization.ts";
import { vtc } from "../scorer/vtc.ts";
import { windowedWork } from "../scorer/windowed-work.ts";

/** Every plugin by the name that profiles use. The only list of names. */
export const CATALOG = {
  filters: {
    "bounded-load": boundedLoad,
    "concurrency-saturation": concurrencySaturation,
    "hotspot-detector": hotspotDetector,
    imbalance,
    "imbalance-gate": imbalanceGate,
    label,
    "load-threshold": loadThreshold,
    "power-of-two": powerOfTwo,
    "prefix-affinity-gate": prefixAffinityGate,
    "prefix-match": prefixMatch,
    "session-pin": sessionPin,
    "slo-headroom": sloHeadroomFilter,
    "utilization-saturation": utilizationSaturation,
    "warm-session": warmSession,
  },
  scorers: {
    "prefix-affinity": prefixAffinity,
    "predicted-latency": predictedLatency,
    "prefix-held": prefixHeld,
    "queue-depth": queueDepth,
    "kv-utilization": kvUtilization,
    "load-balance": loadBalance,
    "active-request": activeRequest,
    "added-latency": addedLatency,
    capacity,
    "consistent-hash": consistentHash,
    "dynamo-cost": dynamoCost,
    gauge,
    "latency-headroom": latencyHeadroom,
    "least-kv-cache": leastKvCache,
    "least-latency": leastLatency,
    "least-request": leastRequest,
    lmetric,
    "load-aware": loadAware,
    "lora-affinity": loraAffinity,
    "most-loaded": mostLoaded,
    "no-hit-lru": noHitLru,
    power,
    "precise-prefix-cache": precisePrefixCache,
    "cache-hit-rate": cacheHitRate,
    "prefix-oracle": prefixOracle,
    queue,
    "queue-headroom": queueHeadroom,
    "running-requests": runningRequestsScorer,
    "session-affinity": sessionAffinity,
    "slo-headroom": sloHeadroom,
    throughput,
    "token-load": tokenLoad,
    utilization,
    "vllm-load": vllmLoad,
    vtc,
    "windowed-work": windowedWork,
  },
  pickers: {
    "max-score": maxScore,
    random: randomPicker,
    "round-robin": roundRobin,
    softmax,
    "weighted-random": weightedRandom,
  },
} as const;
