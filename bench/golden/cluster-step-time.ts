import type { StepTimeSpec } from "#engine/step-time/create-step-time.ts";
import { roofline } from "./blis-engine-case.ts";

/** The latency model of a case, as it is written. */
export interface LatencyForm {
  readonly name: string;
  readonly tp: number;
  readonly dp?: number;
  readonly num_layers: number;
  readonly hidden_dim: number;
  readonly num_heads: number;
  readonly num_kv_heads: number;
  readonly intermediate_dim: number;
  readonly bytes_per_param: number;
  readonly weight_bytes_per_param?: number;
  readonly mlp_matrices?: number;
  readonly tflops_peak: number;
  readonly bw_peak_tbs: number;
  readonly mfu_prefill?: number;
  readonly mfu_decode?: number;
  readonly alpha: readonly [number, number, number];
  readonly beta?: readonly number[];
}

/** What a case's latency model makes of steps, and of times outside them. */
export interface GoldenLatency {
  readonly stepTime: StepTimeSpec;
  readonly queueDelay: { readonly baseMicros: number; readonly perPromptTokenMicros: number };
  readonly perOutputTokenMicros: number;
  /** After the last token of a request that has any. */
  readonly afterLastTokenMicros: number;
}

/**
 * alpha0 passes before a request is seen, alpha2 with each token; alpha1 is for each prompt token in the roofline model
 * and for each answered request in the trained one. All three are truncated to whole microseconds.
 */
export function latencyOf(form: LatencyForm): GoldenLatency {
  if ((form.dp ?? 1) !== 1) throw new Error(`config.latency.dp: expected 1, got ${form.dp}`);
  const [base, second, perToken] = form.alpha;
  const trained = form.name === "trained-physics";
  if (!trained && form.name !== "roofline" && form.name !== "") {
    throw new Error(`config.latency.name: expected roofline or trained-physics, got ${form.name}`);
  }
  return {
    stepTime: trained ? trainedStepTime(form) : rooflineStepTime(form),
    queueDelay: { baseMicros: base, perPromptTokenMicros: trained ? 0 : second },
    perOutputTokenMicros: Math.trunc(perToken),
    afterLastTokenMicros: trained ? Math.trunc(second) : 0,
  };
}

function trainedStepTime(form: LatencyForm): StepTimeSpec {
  const beta = form.beta ?? [];
  if (beta.length < 7 || beta.length > 11) {
    throw new Error(`config.latency.beta: expected 7 to 11 coefficients, got ${beta.length}`);
  }
  const hardware = { tflopsPeak: form.tflops_peak, bandwidthTbs: form.bw_peak_tbs };
  return { kind: "trained-physics", tensorParallel: form.tp, model: modelOf(form), hardware, beta };
}

function rooflineStepTime(form: LatencyForm): StepTimeSpec {
  return roofline({
    ...modelOf(form),
    tflopsPeak: form.tflops_peak,
    bandwidthTbs: form.bw_peak_tbs,
    mfuPrefill: form.mfu_prefill ?? 0,
    mfuDecode: form.mfu_decode ?? 0,
    tensorParallel: form.tp,
  });
}

function modelOf(form: LatencyForm) {
  return {
    layers: form.num_layers,
    hidden: form.hidden_dim,
    heads: form.num_heads,
    kvHeads: form.num_kv_heads || form.num_heads,
    intermediate: form.intermediate_dim || 4 * form.hidden_dim,
    bytesPerParameter: form.bytes_per_param,
    ...(form.weight_bytes_per_param !== undefined &&
      form.weight_bytes_per_param > 0 && { weightBytes: form.weight_bytes_per_param }),
    mlpMatrices: form.mlp_matrices ?? 2,
  };
}
