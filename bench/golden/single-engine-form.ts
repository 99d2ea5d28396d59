import { blisEngine, type EngineSizes, roofline } from "./blis-engine-case.ts";
import type { GoldenCase } from "./golden-case.ts";

/** A case of the file with single engines, as it is written. */
export interface SingleEngineForm {
  readonly model: string;
  readonly approach: string;
  readonly config: EngineSizes & {
    readonly tp: number;
    readonly alpha: readonly [number, number, number];
    readonly beta: readonly [number, number, number] | null;
    readonly roofline: {
      readonly num_layers: number;
      readonly hidden: number;
      readonly heads: number;
      readonly kv_heads: number;
      /** A text that stands for 4 * hidden where the model did not say. */
      readonly intermediate: number | string;
      readonly bytes_per_param: number;
      readonly tflops_peak: number;
      readonly bw_tbs: number;
      readonly mfu_prefill: number;
      readonly mfu_decode: number;
    } | null;
  };
  readonly workload: {
    readonly shared_prefix_tokens: number;
    readonly requests: readonly (readonly [arrival: number, prompt: number, output: number])[];
  };
  readonly expected_published: Readonly<Record<string, unknown>>;
  readonly derived_by_independent_reimpl_matching_all_published?: {
    readonly steps: number;
    readonly kv_block_hits: number;
    readonly kv_block_misses: number;
    readonly preemptions: number;
    readonly sim_ended_us: number;
    readonly per_request: readonly (readonly [ttft: number, e2e: number, delay: number])[];
  };
}

export function singleEngineCase(form: SingleEngineForm, number: number): GoldenCase {
  const { config, workload } = form;
  const derived = form.derived_by_independent_reimpl_matching_all_published;
  const shared = workload.shared_prefix_tokens;
  const one = (value: number | undefined) => (value === undefined ? undefined : [value]);
  return {
    name: `${number + 1} ${form.approach} ${form.model}`,
    seed: 42,
    instances: 1,
    engine: blisEngine(config, stepTimeOf(config), {
      queueDelay: { baseMicros: config.alpha[0], perPromptTokenMicros: config.alpha[1] },
    }),
    profile: { filters: [], scorers: [], picker: { plugin: "round-robin", parameters: {} } },
    admission: undefined,
    signals: { mode: "at-decision", intervalMicros: 50_000 },
    prefixes: { kind: "approximate" },
    indexBlocks: undefined,
    admissionMicros: 0,
    routingMicros: 0,
    horizonMicros: Infinity,
    perOutputTokenMicros: Math.trunc(config.alpha[2]),
    afterLastTokenMicros: 0,
    requests: workload.requests.map(([arrivalAt, promptTokens, outputTokens]) => ({
      arrivalAt,
      promptTokens,
      outputTokens,
      group: shared > 0 ? "shared" : "",
      groupTokens: shared,
      deadlineAt: Infinity,
      priority: 0,
    })),
    expected: {
      aggregate: { ...form.expected_published, ...(derived && { preemption_count: derived.preemptions }) },
      perInstance: [],
      perRequest: (derived?.per_request ?? []).map(([ttft, e2e, delay]) => ({
        status: "completed",
        instance: 0,
        ttft,
        e2e,
        delay,
        itlMeanMillis: undefined,
      })),
      decisions: [],
      steps: one(derived?.steps),
      blockHits: one(derived?.kv_block_hits),
      blockMisses: one(derived?.kv_block_misses),
    },
  };
}

function stepTimeOf({ beta, roofline: numbers, tp }: SingleEngineForm["config"]) {
  if (beta !== null) {
    const [baseMicros, perPrefillTokenMicros, perDecodeMicros] = beta;
    return { kind: "coefficients", baseMicros, perPrefillTokenMicros, perDecodeMicros } as const;
  }
  if (numbers === null) throw new Error("expected config.beta or config.roofline, got neither");
  return roofline({
    layers: numbers.num_layers,
    hidden: numbers.hidden,
    heads: numbers.heads,
    kvHeads: numbers.kv_heads,
    intermediate: typeof numbers.intermediate === "number" ? numbers.intermediate : 4 * numbers.hidden,
    bytesPerParameter: numbers.bytes_per_param,
    mlpMatrices: 2,
    tflopsPeak: numbers.tflops_peak,
    bandwidthTbs: numbers.bw_tbs,
    mfuPrefill: numbers.mfu_prefill,
    mfuDecode: numbers.mfu_decode,
    tensorParallel: tp,
  });
}
