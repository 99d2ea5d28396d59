import type { ProfileSpec, ScorerSpec } from "#core/profile/spec.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { StepTimeSpec } from "#engine/step-time/step-time.ts";
import { blisEngine, type EngineSizes, roofline } from "./blis-engine-case.ts";
import type { GoldenCase, GoldenDecision } from "./golden-case.ts";

/** A case with several engines, as it is written. */
export interface ClusterForm {
  readonly name: string;
  readonly config: EngineSizes & {
    readonly num_instances: number;
    readonly routing_policy: string;
    readonly routing_scorers: string;
    readonly snapshot_refresh_interval_us: number;
    readonly cache_signal_delay_us: number;
    readonly scheduler: EngineConfig["scheduler"];
    readonly preemption_policy: string;
    readonly admission_policy: string;
    readonly admission_latency_us: number;
    readonly routing_latency_us: number;
    readonly kv_cpu_blocks: number;
    readonly seed: number;
    readonly horizon_us: number;
    readonly latency: Latency;
  };
  readonly requests: readonly {
    readonly arrival_us: number;
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly prefix_group: string;
    readonly prefix_length: number;
    readonly slo_class: string;
    readonly deadline_us: number;
  }[];
  readonly expected: {
    readonly aggregate: Readonly<Record<string, unknown>>;
    readonly per_instance: readonly Readonly<Record<string, unknown>>[];
    readonly per_request: readonly {
      readonly status: string;
      readonly instance?: number;
      readonly ttft_us?: number;
      readonly e2e_us?: number;
      readonly scheduling_delay_us?: number;
      readonly itl_mean_ms?: number;
    }[];
    readonly routing_decisions?: readonly GoldenDecision[];
    readonly derived?: {
      readonly steps_by_instance?: readonly number[];
      readonly kv_block_hits?: readonly number[];
      readonly kv_block_misses?: readonly number[];
    };
  };
}

interface Latency {
  readonly name: string;
  readonly tp: number;
  readonly num_layers: number;
  readonly hidden_dim: number;
  readonly num_heads: number;
  readonly num_kv_heads: number;
  readonly intermediate_dim: number;
  readonly bytes_per_param: number;
  readonly mlp_matrices?: number;
  readonly tflops_peak: number;
  readonly bw_peak_tbs: number;
  readonly mfu_prefill?: number;
  readonly mfu_decode?: number;
  readonly alpha: readonly [number, number, number];
  readonly beta?: readonly number[];
}

/** Blocks that BLIS's own prefix index remembers for each engine. */
const INDEX_BLOCKS = 10_000;

/** What a class of service means in BLIS: a smaller number is more urgent. */
const PRIORITIES: Readonly<Record<string, number>> = {
  critical: 0,
  standard: 1,
  batch: 5,
  sheddable: 6,
  background: 7,
};

export function clusterCase({ name, config, requests, expected }: ClusterForm): GoldenCase {
  const linear = config.latency.name === "trained-physics";
  refuseWhatIsNotModelled(config);
  const prefixes = new Map<string, number>([["", 0]]);
  for (const { prefix_group, prefix_length } of requests) {
    if (!prefixes.has(prefix_group)) prefixes.set(prefix_group, prefix_length);
  }
  const scorers = config.routing_scorers === "" ? DEFAULT_SCORERS : config.routing_scorers;
  const usesOwnIndex = config.routing_policy === "weighted" && scorers.includes("prefix-affinity");
  return {
    name,
    seed: config.seed,
    instances: config.num_instances,
    engine: blisEngine(config, linear ? linearStepTime(config.latency) : rooflineStepTime(config.latency), {
      scheduler: config.scheduler,
      preemption: config.preemption_policy === "fcfs" ? "tail" : "lowest-priority",
      queueDelay: { baseMicros: config.latency.alpha[0], perPromptTokenMicros: 0 },
    }),
    profile: profileOf(config.routing_policy, scorers),
    admission: undefined,
    signals: { mode: "at-decision", intervalMicros: config.snapshot_refresh_interval_us },
    prefixes: usesOwnIndex
      ? { kind: "approximate" }
      : { kind: "engine-caches", delayMicros: config.cache_signal_delay_us },
    indexBlocks: INDEX_BLOCKS,
    admissionMicros: config.admission_latency_us,
    routingMicros: config.routing_latency_us,
    horizonMicros: config.horizon_us,
    perOutputTokenMicros: Math.trunc(config.latency.alpha[2]),
    afterLastTokenMicros: Math.trunc(config.latency.alpha[1]),
    requests: requests.map((request) => {
      const groupTokens = prefixes.get(request.prefix_group) ?? 0;
      return {
        arrivalAt: request.arrival_us,
        promptTokens: groupTokens + request.input_tokens,
        outputTokens: request.output_tokens,
        group: request.prefix_group,
        groupTokens,
        deadlineAt: request.deadline_us > 0 ? request.deadline_us : Infinity,
        priority: PRIORITIES[request.slo_class] ?? 1,
      };
    }),
    expected: {
      aggregate: expected.aggregate,
      perInstance: expected.per_instance,
      perRequest: expected.per_request.map((request) => ({
        status: request.status,
        instance: request.instance,
        ttft: request.ttft_us,
        e2e: request.e2e_us,
        delay: request.scheduling_delay_us,
        itlMeanMillis: request.itl_mean_ms,
      })),
      decisions: expected.routing_decisions ?? [],
      steps: expected.derived?.steps_by_instance,
      blockHits: expected.derived?.kv_block_hits,
      blockMisses: expected.derived?.kv_block_misses,
    },
  };
}

function refuseWhatIsNotModelled(config: ClusterForm["config"]): void {
  const accepted = (path: string, value: unknown, values: readonly unknown[]) => {
    if (!values.includes(value)) {
      throw new Error(`config.${path}: expected ${values.join(" or ")}, got ${JSON.stringify(value)}`);
    }
  };
  accepted("admission_policy", config.admission_policy, ["always-admit"]);
  accepted("kv_cpu_blocks", config.kv_cpu_blocks, [0]);
  accepted("latency.name", config.latency.name, ["roofline", "trained-physics"]);
  accepted("preemption_policy", config.preemption_policy, ["fcfs", "priority"]);
  const readsCaches = /precise-prefix-cache|no-hit-lru/.test(config.routing_scorers);
  if (config.routing_scorers.includes("prefix-affinity") && readsCaches) {
    throw new Error("config.routing_scorers: expected the router's own index or the engines' caches, got both");
  }
  accepted("scheduler", config.scheduler, ["fcfs", "priority-fcfs", "sjf"]);
}

/** BLIS's default list of the weighted policy. */
const DEFAULT_SCORERS = "precise-prefix-cache:2,queue-depth:1,kv-utilization:1";

const DOUBLE_COUNT = { measure: "scraped-and-own" };

/** BLIS's scorers by the names that they have in the catalog. */
const SCORERS: Readonly<Record<string, Pick<ScorerSpec, "plugin" | "parameters">>> = {
  "prefix-affinity": { plugin: "prefix-affinity", parameters: {} },
  "precise-prefix-cache": { plugin: "precise-prefix-cache", parameters: {} },
  "no-hit-lru": { plugin: "no-hit-lru", parameters: {} },
  "queue-depth": { plugin: "queue", parameters: {} },
  "kv-utilization": { plugin: "kv-utilization", parameters: {} },
  "load-balance": { plugin: "load-balance", parameters: DOUBLE_COUNT },
  "active-requests": { plugin: "active-request", parameters: {} },
  "running-requests": { plugin: "running-requests", parameters: {} },
  "load-aware": { plugin: "load-aware", parameters: {} },
  "vllm-dp": { plugin: "vllm-load", parameters: {} },
};

function profileOf(policy: string, scorers: string): ProfileSpec {
  const picker = { plugin: "max-score", parameters: { tieBreak: "random" } };
  switch (policy) {
    case "round-robin":
      return { filters: [], scorers: [], picker: { plugin: "round-robin", parameters: {} } };
    case "least-loaded":
      return { filters: [], scorers: [{ plugin: "load-balance", weight: 1, parameters: DOUBLE_COUNT }], picker };
    case "weighted":
      return { filters: [], scorers: scorers.split(",").map(scorerOf), picker };
    default:
      throw new Error(`config.routing_policy: expected round-robin, least-loaded or weighted, got ${policy}`);
  }
}

function scorerOf(pair: string): ScorerSpec {
  const [name = "", weight = ""] = pair.split(":").map((part) => part.trim());
  const found = Object.hasOwn(SCORERS, name) ? SCORERS[name] : undefined;
  if (found === undefined || !(Number(weight) > 0)) {
    throw new Error(`config.routing_scorers: expected ${Object.keys(SCORERS).join(", ")} with weights, got ${pair}`);
  }
  return { ...found, weight: Number(weight) };
}

/** b8 * (KV written by prefill) + b9 * (KV read by decode) + b5 * requests + b6; the other coefficients must be 0. */
function linearStepTime(latency: Latency): StepTimeSpec {
  const headSize = latency.hidden_dim / latency.num_heads;
  const kvMicros = (latency.num_layers * 2 * headSize * latency.num_kv_heads * 2) / (latency.bw_peak_tbs * 1e6);
  const beta = latency.beta ?? [];
  const others = [0, 1, 2, 3, 4, 7, 10].filter((place) => (beta[place] ?? 0) !== 0);
  if (others.length > 0) throw new Error(`config.latency.beta: expected 0 at ${others.join(", ")}`);
  return {
    kind: "coefficients",
    baseMicros: beta[6] ?? 0,
    perPrefillTokenMicros: (beta[8] ?? 0) * kvMicros,
    perDecodeMicros: (beta[9] ?? 0) * kvMicros,
    perSequenceMicros: beta[5] ?? 0,
    perDecodeContextTokenMicros: (beta[9] ?? 0) * kvMicros,
  };
}

function rooflineStepTime(latency: Latency): StepTimeSpec {
  return roofline({
    layers: latency.num_layers,
    hidden: latency.hidden_dim,
    heads: latency.num_heads,
    kvHeads: latency.num_kv_heads,
    intermediate: latency.intermediate_dim,
    bytesPerParameter: latency.bytes_per_param,
    mlpMatrices: latency.mlp_matrices ?? 2,
    tflopsPeak: latency.tflops_peak,
    bandwidthTbs: latency.bw_peak_tbs,
    mfuPrefill: latency.mfu_prefill ?? 0,
    mfuDecode: latency.mfu_decode ?? 0,
    tensorParallel: latency.tp,
  });
}
