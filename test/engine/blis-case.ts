import { readFileSync } from "node:fs";
import type { EngineConfig } from "#engine/config.ts";
import type { StepTimeSpec } from "#engine/step-time/step-time.ts";
import { blisEngine, type BlisRequest, type OutputDelay } from "./blis-cluster.ts";

const FOLDER = new URL("../golden/blis/", import.meta.url);

/** A case of either form, brought to one. */
export interface BlisCase {
  readonly name: string;
  readonly config: EngineConfig;
  readonly instances: number;
  readonly requests: readonly BlisRequest[];
  readonly delay: OutputDelay;
  /** Time to the first token, end to end, and until scheduled, in microseconds, per request. */
  readonly expected: readonly (readonly [ttft: number, e2e: number, delay: number])[];
  /** By engine. */
  readonly steps: readonly number[];
  readonly blockHits: readonly number[];
  readonly blockMisses: readonly number[];
  readonly preemptions: number;
  readonly endedAt: number;
  readonly metrics: Readonly<Record<string, number>>;
}

interface EngineGolden {
  readonly model: string;
  readonly approach: string;
  readonly config: {
    readonly max_num_seqs: number;
    readonly max_num_batched_tokens: number;
    readonly long_prefill_token_threshold: number;
    readonly max_model_len: number;
    readonly total_kv_blocks: number;
    readonly block_size: number;
    readonly tp: number;
    readonly alpha: readonly [number, number, number];
    readonly beta: readonly [number, number, number] | null;
    readonly roofline: {
      readonly tflops_peak: number;
      readonly bw_tbs: number;
      readonly mfu_prefill: number;
      readonly mfu_decode: number;
    } | null;
  };
  readonly workload: {
    readonly shared_prefix_tokens: number;
    readonly requests: readonly (readonly [number, number, number])[];
  };
  readonly expected_published: Readonly<Record<string, number>>;
  readonly derived_by_independent_reimpl_matching_all_published: {
    readonly steps: number;
    readonly kv_block_hits: number;
    readonly kv_block_misses: number;
    readonly preemptions: number;
    readonly sim_ended_us: number;
    readonly per_request: readonly (readonly [number, number, number])[];
  };
}

/** The five single engines. */
export function engineGoldens(): BlisCase[] {
  const goldens = JSON.parse(readFileSync(new URL("blis_engine_goldens.json", FOLDER), "utf8")) as EngineGolden[];
  return goldens.map((golden, number) => {
    const { config, workload } = golden;
    const shared = workload.shared_prefix_tokens;
    const derived = golden.derived_by_independent_reimpl_matching_all_published;
    return {
      name: `engine ${number + 1}: ${golden.approach} ${golden.model}`,
      config: blisEngine(config.total_kv_blocks, {
        blockTokens: config.block_size,
        sequencesMax: config.max_num_seqs,
        batchTokensMax: config.max_num_batched_tokens,
        longPrefillTokens: config.long_prefill_token_threshold,
        modelTokensMax: config.max_model_len,
        queueDelay: { baseMicros: config.alpha[0], perPromptTokenMicros: config.alpha[1] },
        stepTime: goldenStepTime(config),
      }),
      instances: 1,
      requests: workload.requests.map(([arrival, promptTokens, outputTokens]) => ({
        arrival,
        promptTokens,
        outputTokens,
        group: shared > 0 ? "shared" : "",
        groupTokens: shared,
        deadline: 0,
        priority: 0,
      })),
      delay: { perToken: Math.trunc(config.alpha[2]), afterLast: 0 },
      expected: derived.per_request,
      steps: [derived.steps],
      blockHits: [derived.kv_block_hits],
      blockMisses: [derived.kv_block_misses],
      preemptions: derived.preemptions,
      endedAt: derived.sim_ended_us,
      metrics: golden.expected_published,
    };
  });
}

function goldenStepTime({ beta, roofline, tp }: EngineGolden["config"]): StepTimeSpec {
  if (beta !== null) {
    return { kind: "coefficients", baseMicros: beta[0], perPrefillTokenMicros: beta[1], perDecodeMicros: beta[2] };
  }
  return {
    kind: "roofline",
    tensorParallel: tp,
    model: {
      layers: 32,
      hidden: 4096,
      heads: 32,
      kvHeads: 8,
      intermediate: 4 * 4096,
      bytesPerParameter: 2,
      mlpMatrices: 2,
    },
    hardware: {
      tflopsPeak: roofline?.tflops_peak ?? 0,
      bandwidthTbs: roofline?.bw_tbs ?? 0,
      mfuPrefill: roofline?.mfu_prefill ?? 0,
      mfuDecode: roofline?.mfu_decode ?? 0,
    },
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
  readonly mlp_matrices: number;
  readonly tflops_peak: number;
  readonly bw_peak_tbs: number;
  readonly mfu_prefill: number;
  readonly mfu_decode: number;
  readonly alpha: readonly [number, number, number];
  readonly beta: readonly number[];
}

interface ClusterGolden {
  readonly name: string;
  readonly config: {
    readonly num_instances: number;
    readonly routing_policy: string;
    readonly scheduler: EngineConfig["scheduler"];
    readonly preemption_policy: string;
    readonly total_kv_blocks: number;
    readonly block_size: number;
    readonly max_num_seqs: number;
    readonly max_num_batched_tokens: number;
    readonly long_prefill_token_threshold: number;
    readonly max_model_len: number;
    readonly latency: Latency;
  };
  readonly requests: readonly {
    readonly arrival_us: number;
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly prefix_group: string;
    readonly prefix_length: number;
    readonly deadline_us: number;
  }[];
  readonly expected: {
    readonly aggregate: Readonly<Record<string, number>>;
    readonly per_request: readonly {
      readonly ttft_us: number;
      readonly e2e_us: number;
      readonly scheduling_delay_us: number;
    }[];
    readonly derived: {
      readonly steps_by_instance: readonly number[];
      readonly kv_block_hits: readonly number[];
      readonly kv_block_misses: readonly number[];
    };
  };
}

/** One of the clusters; the policy is round-robin in those that need no router. */
export function clusterGolden(name: string): BlisCase {
  const golden = JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8")) as ClusterGolden;
  const { config, expected } = golden;
  const linear = config.latency.name === "trained-physics";
  const prefixes = new Map<string, number>([["", 0]]);
  for (const request of golden.requests) {
    if (!prefixes.has(request.prefix_group)) prefixes.set(request.prefix_group, request.prefix_length);
  }
  return {
    name,
    config: blisEngine(config.total_kv_blocks, {
      blockTokens: config.block_size,
      sequencesMax: config.max_num_seqs,
      batchTokensMax: config.max_num_batched_tokens,
      longPrefillTokens: config.long_prefill_token_threshold,
      modelTokensMax: config.max_model_len,
      scheduler: config.scheduler,
      preemption: config.preemption_policy === "fcfs" ? "tail" : "lowest-priority",
      queueDelay: { baseMicros: config.latency.alpha[0], perPromptTokenMicros: 0 },
      stepTime: linear ? linearStepTime(config.latency) : rooflineStepTime(config.latency),
    }),
    instances: config.num_instances,
    requests: golden.requests.map((request) => {
      const groupTokens = prefixes.get(request.prefix_group) ?? 0;
      return {
        arrival: request.arrival_us,
        promptTokens: groupTokens + request.input_tokens,
        outputTokens: request.output_tokens,
        group: request.prefix_group,
        groupTokens,
        deadline: request.deadline_us,
        priority: 0,
      };
    }),
    delay: linear
      ? { perToken: Math.trunc(config.latency.alpha[2]), afterLast: Math.trunc(config.latency.alpha[1]) }
      : { perToken: 0, afterLast: 0 },
    expected: expected.per_request.map((request) => [request.ttft_us, request.e2e_us, request.scheduling_delay_us]),
    steps: expected.derived.steps_by_instance,
    blockHits: expected.derived.kv_block_hits,
    blockMisses: expected.derived.kv_block_misses,
    preemptions: expected.aggregate["preemption_count"] ?? 0,
    endedAt: Math.round((expected.aggregate["vllm_estimated_duration_s"] ?? 0) * 1e6),
    metrics: expected.aggregate,
  };
}

/** b8 * (KV written by prefill) + b9 * (KV read by decode) + b5 * requests + b6. */
function linearStepTime(latency: Latency): StepTimeSpec {
  const headSize = latency.hidden_dim / latency.num_heads;
  const kvMicros = (latency.num_layers * 2 * headSize * latency.num_kv_heads * 2) / (latency.bw_peak_tbs * 1e6);
  const [b5 = 0, b6 = 0, , b8 = 0, b9 = 0] = latency.beta.slice(5);
  return {
    kind: "coefficients",
    baseMicros: b6,
    perPrefillTokenMicros: b8 * kvMicros,
    perDecodeMicros: b9 * kvMicros,
    perSequenceMicros: b5,
    perDecodeContextTokenMicros: b9 * kvMicros,
  };
}

function rooflineStepTime(latency: Latency): StepTimeSpec {
  return {
    kind: "roofline",
    tensorParallel: latency.tp,
    model: {
      layers: latency.num_layers,
      hidden: latency.hidden_dim,
      heads: latency.num_heads,
      kvHeads: latency.num_kv_heads,
      intermediate: latency.intermediate_dim,
      bytesPerParameter: latency.bytes_per_param,
      mlpMatrices: latency.mlp_matrices,
    },
    hardware: {
      tflopsPeak: latency.tflops_peak,
      bandwidthTbs: latency.bw_peak_tbs,
      mfuPrefill: latency.mfu_prefill,
      mfuDecode: latency.mfu_decode,
    },
  };
}
