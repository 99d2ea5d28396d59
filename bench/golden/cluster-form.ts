import type { ProfileSpec } from "#core/plugin/spec.ts";
import { SCHEDULER_POLICIES, type SchedulerPolicy } from "#engine/config.ts";
import type { PrefixSignal } from "#sim/setting/simulation-options.ts";
import { blisEngine, type EngineSizes } from "./blis-engine-case.ts";
import { type AdmissionForm, admissionOf } from "./cluster-admission.ts";
import { routingProfile } from "./cluster-routing.ts";
import { type LatencyForm, latencyOf } from "./cluster-step-time.ts";
import type { GoldenCase, GoldenDecision, GoldenExpectation, GoldenRequest } from "./golden-case.ts";
import { LastingIndex } from "./lasting-index.ts";
import { enginePriority } from "./slo-class.ts";

/** A case with several engines, as it is written. */
export interface ClusterForm {
  readonly name: string;
  readonly config: EngineSizes &
    AdmissionForm & {
      readonly num_instances: number;
      readonly routing_policy: string;
      readonly routing_scorers: string;
      readonly snapshot_refresh_interval_us: number;
      readonly cache_signal_delay_us: number;
      readonly scheduler: string;
      readonly preemption_policy: string;
      readonly admission_latency_us: number;
      readonly routing_latency_us: number;
      readonly kv_cpu_blocks: number;
      readonly seed: number;
      readonly horizon_us: number;
      readonly latency: LatencyForm;
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

/** Blocks that BLIS's own prefix index remembers for each engine. */
const INDEX_BLOCKS = 10_000;

export function clusterCase({ name, config, requests, expected }: ClusterForm): GoldenCase {
  const { latency } = config;
  const { stepTime, queueDelay, perOutputTokenMicros, afterLastTokenMicros } = latencyOf(latency);
  const profile = routingProfile(config.routing_policy, config.routing_scorers);
  accepted("kv_cpu_blocks", config.kv_cpu_blocks, [0]);
  return {
    name,
    seed: config.seed,
    instances: config.num_instances,
    engine: blisEngine(config, stepTime, {
      scheduler: schedulerOf(config.scheduler),
      preemption:
        accepted("preemption_policy", config.preemption_policy, ["fcfs", "priority"]) === "fcfs"
          ? "tail"
          : "lowest-priority",
      queueDelay,
    }),
    profile,
    admission: admissionOf(config),
    signals: { mode: "at-decision", intervalMicros: config.snapshot_refresh_interval_us },
    prefixes: prefixesOf(profile, config.cache_signal_delay_us),
    ...(profile.scorers.some(({ plugin }) => plugin === "prefix-oracle") && {
      engineCaches: { delayMicros: config.cache_signal_delay_us },
    }),
    indexBlocks: INDEX_BLOCKS,
    admissionMicros: config.admission_latency_us,
    routingMicros: config.routing_latency_us,
    horizonMicros: config.horizon_us,
    perOutputTokenMicros,
    afterLastTokenMicros,
    requests: requestsOf(requests),
    expected: expectationOf(expected),
  };
}

/** The router knows prefixes from its own decisions, or from copies of the engines' caches. */
function prefixesOf({ scorers }: ProfileSpec, delayMicros: number): PrefixSignal {
  const uses = (name: string) => scorers.some(({ plugin }) => plugin === name);
  if (!uses("prefix-affinity")) return { kind: "engine-caches", delayMicros };
  if (!uses("no-hit-lru")) return { kind: "index", create: () => new LastingIndex() };
  throw new Error("config.routing_scorers: expected no-hit-lru without prefix-affinity, got both");
}

/** The prefix of a group has the length of the first of its requests with a prefix. */
function requestsOf(requests: ClusterForm["requests"]): GoldenRequest[] {
  const prefixes = new Map<string, number>();
  for (const { prefix_group, prefix_length } of requests) {
    if (prefix_group !== "" && prefix_length > 0 && !prefixes.has(prefix_group)) {
      prefixes.set(prefix_group, prefix_length);
    }
  }
  return requests.map((request) => {
    const groupTokens = prefixes.get(request.prefix_group) ?? 0;
    return {
      arrivalAt: request.arrival_us,
      promptTokens: groupTokens + request.input_tokens,
      outputTokens: request.output_tokens,
      group: groupTokens > 0 ? request.prefix_group : "",
      groupTokens,
      deadlineAt: request.deadline_us > 0 ? request.deadline_us : Infinity,
      priority: enginePriority(request.slo_class),
    };
  });
}

function expectationOf(expected: ClusterForm["expected"]): GoldenExpectation {
  return {
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
  };
}

function schedulerOf(name: string): SchedulerPolicy {
  const found = SCHEDULER_POLICIES.find((policy) => policy === (name || "fcfs"));
  if (found !== undefined) return found;
  throw new Error(`config.scheduler: expected ${SCHEDULER_POLICIES.join(", ")}, got ${name}`);
}

function accepted<T>(path: string, value: T, values: readonly T[]): T {
  if (values.includes(value)) return value;
  throw new Error(`config.${path}: expected ${values.join(" or ")}, got ${JSON.stringify(value)}`);
}
