import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { BatchShape } from "./batch-shape.ts";
import { activatedExperts } from "./expert-time.ts";
import { type ExpertShape, type HardwareShape, headSizeOf, type ModelShape } from "./model-shape.ts";
import type { StepTime } from "./step-time.ts";

/**
 * One crossover for the whole step: step = max(compute, memory).
 *
 * With d = hidden, L = layers, h = heads, dh = head size, q = h * dh, k = kvHeads * dh, and for a sequence that
 * computes n tokens with s before it, ctx = s + (n - 1) / 2:
 *
 *   flops(s, n) = L * (2n (dq + 2dk) + 2n dq + 4 h n ctx dh + 5 h n ctx + 2 n d + 2n * matrices * d * dff [* experts per token])
 *   bytes(s, n) = 2 L k b n + 2 L k b s + L d b n
 *   weights     = L * (d (q + 2k) + dq + matrices * d * dff [* effective experts]) * weightBytes
 *   compute     = (sum of prefill flops) / tp / (peak * mfuPrefill) + (sum of decode flops) / tp / (peak * mfuDecode)
 *   memory      = (weights / tp + sum of bytes / tp) / bandwidth
 *
 * Effective experts: activatedExperts. Shared experts add their own width to dff, for every token and to the weights.
 * The formula is that of BLIS (inference-sim), which takes two feed-forward matrices.
 */
export interface RooflineSpec {
  readonly kind: "roofline";
  readonly model: ModelShape;
  readonly hardware: HardwareShape;
  readonly tensorParallel: number;
}

/** Step time as the larger of what arithmetic and what memory takes. */
export class RooflineStepTime implements StepTime {
  readonly stateless = true;
  readonly #flopsPerToken: number;
  readonly #flopsPerPair: number;
  readonly #bytesPerToken: number;
  readonly #bytesPerContextToken: number;
  readonly #attentionWeights: number;
  readonly #mlpWeights: number;
  readonly #sharedWeights: number;
  readonly #weightBytes: number;
  readonly #experts: ExpertShape | undefined;
  readonly #tensorParallel: number;
  readonly #prefillFlopsPerSecond: number;
  readonly #decodeFlopsPerSecond: number;
  readonly #bytesPerSecond: number;

  constructor(spec: RooflineSpec) {
    const { model, hardware } = spec;
    const d = model.hidden;
    const layers = model.layers;
    const headSize = headSizeOf(model);
    const q = model.heads * headSize;
    const k = model.kvHeads * headSize;
    const mlp = model.mlpMatrices * d * model.intermediate;
    const shared = model.mlpMatrices * d * (model.experts?.sharedIntermediate ?? 0);
    const mlpPerToken = mlp * (model.experts?.perToken ?? 1) + shared;
    this.#flopsPerToken = layers * (2 * (d * q + 2 * d * k) + 2 * d * q + 2 * d + 2 * mlpPerToken);
    this.#flopsPerPair = layers * (4 * model.heads * headSize + 5 * model.heads);
    this.#bytesPerContextToken = 2 * layers * k * model.bytesPerParameter;
    this.#bytesPerToken = this.#bytesPerContextToken + layers * d * model.bytesPerParameter;
    this.#attentionWeights = layers * (d * (q + 2 * k) + d * q);
    this.#mlpWeights = layers * mlp;
    this.#sharedWeights = layers * shared;
    this.#weightBytes = model.weightBytes ?? model.bytesPerParameter;
    this.#experts = model.experts;
    this.#tensorParallel = spec.tensorParallel;
    this.#prefillFlopsPerSecond = hardware.tflopsPeak * 1e12 * hardware.mfuPrefill;
    this.#decodeFlopsPerSecond = hardware.tflopsPeak * 1e12 * hardware.mfuDecode;
    this.#bytesPerSecond = hardware.bandwidthTbs * 1e12;
  }

  micros(shape: Readonly<BatchShape>): number {
    const tokens = shape.prefillTokens + shape.decodeSequences;
    if (tokens === 0) return 0;
    const tp = this.#tensorParallel;
    const prefillFlops = this.#flopsPerToken * shape.prefillTokens + this.#flopsPerPair * (shape.prefillPairsTwice / 2);
    const decodeFlops = this.#flopsPerToken * shape.decodeSequences + this.#flopsPerPair * shape.decodeContextTokens;
    const computeSeconds =
      prefillFlops / tp / this.#prefillFlopsPerSecond + decodeFlops / tp / this.#decodeFlopsPerSecond;
    const bytes =
      this.#bytesPerToken * tokens +
      this.#bytesPerContextToken * (shape.prefillContextTokens + shape.decodeContextTokens);
    const mlpWeights = this.#mlpWeights * this.#expertsLoaded(tokens) + this.#sharedWeights;
    const weights = (this.#attentionWeights + mlpWeights) * this.#weightBytes;
    const memorySeconds = (weights / tp + bytes / tp) / this.#bytesPerSecond;
    return Math.max(computeSeconds, memorySeconds) * MICROS_PER_SECOND;
  }

  #expertsLoaded(tokens: number): number {
    if (this.#experts === undefined) return 1;
    return activatedExperts(this.#experts.count, this.#experts.perToken, tokens);
  }
}
