import { assert } from "#core/base/assert.ts";
import type { BatchShape } from "./batch-shape.ts";
import { expertLayers, type HardwareShape, headSizeOf, type ModelShape } from "./model-shape.ts";
import type { StepTime } from "./step-time.ts";

/**
 * Analytic terms of a transformer, each with a learned coefficient: BLIS's (inference-sim's) default model.
 *
 *   step = b0 * prefill compute + b8 * prefill KV written + b1 * decode compute + b9 * decode KV read
 *        + b2 * weights + b3 * all-reduce + b4 * layers + b5 * sequences + b6
 *        + b7 * layers with experts, where others have none                                                (us)
 *
 * With d = hidden, k = kvHeads * head size, T tokens of one kind in the step, tp the tensor parallelism, all sums over
 * layers, and peak and bandwidth as the hardware's without fractions:
 *
 *   compute        = (2 T d (2d + 2k) / tp + attention + 6 T d dff / tp) / peak
 *   attention      = 4 heads/tp * head size * n * (whole + n/2) a prefill of n tokens, * context a decode
 *   prefill KV     = 2 (k / tp) T * 2 bytes / bandwidth; decode KV the same for the contexts' tokens and the new ones
 *   weights        = (d (2d + 2k) + 3 d dff) * weight bytes / tp / bandwidth
 *   all-reduce     = 2 T d * bytes * 2 (tp - 1) / tp / bandwidth, 2 because of attention and feed-forward
 *
 * Of a mixture dff is that of the experts that a token uses, in compute, and of all experts, in weights, however few
 * the step touches. A chunk of a prompt attends the whole prompt, wherever it stands, and b10 is of several ranks: so it
 * is there. With 7 or 8 coefficients the prefill term is b0 * max(compute, KV), with less than 10 the decode term
 * b1 * max(compute, KV).
 */
export interface TrainedPhysicsSpec {
  readonly kind: "trained-physics";
  readonly model: ModelShape;
  readonly hardware: Pick<HardwareShape, "tflopsPeak" | "bandwidthTbs">;
  readonly tensorParallel: number;
  /** 7 to 11 coefficients. */
  readonly beta: readonly number[];
}

/** KV blocks are taken to hold 16-bit numbers. */
const KV_ELEMENT_BYTES = 2;

/** Step time as a weighted sum of what arithmetic, memory and exchange take by a roofline. */
export class TrainedPhysicsStepTime implements StepTime {
  readonly stateless = true;
  readonly #spec: TrainedPhysicsSpec;
  readonly #beta: readonly number[];
  readonly #flopsPerMicro: number;
  readonly #bytesPerMicro: number;
  readonly #keyWidth: number;
  readonly #headSize: number;
  readonly #weightMicros: number;
  /** Widths of feed-forward blocks, summed over layers: what a token uses. */
  readonly #usedWidth: number;
  readonly #mixedMicros: number;

  constructor(spec: TrainedPhysicsSpec) {
    const { model, hardware, tensorParallel: tp, beta } = spec;
    assert(model.latent === undefined, "the trained model has no latent attention");
    assert(beta.length >= 7 && beta.length <= 11, "the trained model has 7 to 11 coefficients");
    this.#spec = spec;
    this.#beta = Array.from({ length: 11 }, (_, i) => beta[i] ?? 0);
    this.#flopsPerMicro = hardware.tflopsPeak * 1e6;
    this.#bytesPerMicro = hardware.bandwidthTbs * 1e6;
    this.#headSize = Math.floor(headSizeOf(model));
    this.#keyWidth = (model.kvHeads || model.heads) * this.#headSize;
    const { layers, hidden: d, intermediate } = model;
    const mixed = expertLayers(model);
    const plain = (layers - mixed) * (model.denseLayers?.intermediate ?? intermediate);
    const { count = 0, perToken = 0, sharedIntermediate = 0 } = model.experts ?? {};
    this.#usedWidth = plain + mixed * (perToken * intermediate + sharedIntermediate);
    const heldWidth = plain + mixed * (count * intermediate + sharedIntermediate);
    this.#mixedMicros = mixed === layers ? 0 : this.#beta[7]! * mixed;
    const weightBytes = model.weightBytes ?? model.bytesPerParameter;
    const attention = (layers * d * (2 * d + 2 * this.#keyWidth) * weightBytes) / tp;
    this.#weightMicros = (attention + (heldWidth * 3 * d * weightBytes) / tp) / this.#bytesPerMicro;
  }

  micros(shape: Readonly<BatchShape>): number {
    const { prefillTokens, decodeSequences } = shape;
    if (prefillTokens + decodeSequences === 0) return 0;
    const b = this.#beta;
    const { model, tensorParallel: tp, beta } = this.#spec;
    const heads = model.heads / tp;
    const prefillPairs = 4 * heads * this.#headSize * (shape.prefillWholeTwice / 2);
    const decodePairs = 4 * heads * shape.decodeContextTokens * this.#headSize;
    const prefill = this.#compute(prefillTokens, model.layers * prefillPairs);
    const prefillKv = this.#kv(prefillTokens);
    const decode = this.#compute(decodeSequences, model.layers * decodePairs);
    const decodeKv = this.#kv(decodeSequences === 0 ? 0 : shape.decodeContextTokens + decodeSequences);
    const reduce = this.#allReduce(prefillTokens + decodeSequences);
    // In the order of the formula: floating-point sums depend on it, and the result is truncated.
    return (
      (beta.length >= 9 ? b[0]! * prefill + b[8]! * prefillKv : b[0]! * Math.max(prefill, prefillKv)) +
      (beta.length >= 10 ? b[1]! * decode + b[9]! * decodeKv : b[1]! * Math.max(decode, decodeKv)) +
      b[2]! * this.#weightMicros +
      b[3]! * (reduce + reduce) +
      b[4]! * model.layers +
      b[5]! * (shape.prefillSequences + decodeSequences) +
      b[6]! +
      this.#mixedMicros
    );
  }

  #compute(tokens: number, attentionFlops: number): number {
    if (tokens === 0) return 0;
    const { layers, hidden: d } = this.#spec.model;
    const tp = this.#spec.tensorParallel;
    const projections = (layers * 2 * tokens * d * (2 * d + 2 * this.#keyWidth)) / tp;
    const feedForward = (this.#usedWidth * tokens * 6 * d) / tp;
    return (projections + attentionFlops + feedForward) / this.#flopsPerMicro;
  }

  #kv(tokens: number): number {
    const { model, tensorParallel: tp } = this.#spec;
    return (model.layers * 2 * (this.#keyWidth / tp) * tokens * KV_ELEMENT_BYTES) / this.#bytesPerMicro;
  }

  /** Of one of the two reductions that a layer has. */
  #allReduce(tokens: number): number {
    const { model, tensorParallel: tp } = this.#spec;
    if (tp <= 1) return 0;
    const share = (tp - 1) / tp;
    return (model.layers * tokens * model.hidden * model.bytesPerParameter * 2 * share) / this.#bytesPerMicro;
  }
}
