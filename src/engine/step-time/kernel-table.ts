import { AttentionGrid, type AttentionRow } from "./attention-grid.ts";
import type { BatchShape } from "./batch-shape.ts";
import { Curve } from "./curve.ts";
import type { StepTime } from "./step-time.ts";

/** [x, microseconds] */
export type CurvePoint = readonly [x: number, micros: number];

/**
 * Measured kernels put together:
 *
 *   step = host + hostPerSequence * sequences
 *        + scale * (layers * (layer(tokens) + attention(batch)) + once(tokens) + perSequence(sequences))
 *
 * `layer` is the sum of a layer's dense kernels (a kernel that runs twice in a layer counts twice) by tokens in the
 * batch, `once` that of the kernels outside the layers, `perSequence` that of the output head and the sampler by
 * sequences. Attention is that of the average prefill together with all decodes at their average context, and for every
 * further prefill of the average prefill alone.
 */
export interface KernelTableSpec {
  readonly kind: "kernel-table";
  readonly layers: number;
  readonly layer: readonly CurvePoint[];
  readonly once: readonly CurvePoint[];
  readonly perSequence: readonly CurvePoint[];
  readonly attention: readonly AttentionRow[];
  readonly scale?: number;
  readonly hostMicros?: number;
  readonly hostPerSequenceMicros?: number;
}

export class KernelTableStepTime implements StepTime {
  readonly stateless = true;
  readonly #layers: number;
  readonly #layer: Curve;
  readonly #once: Curve;
  readonly #perSequence: Curve;
  readonly #attention: AttentionGrid;
  readonly #scale: number;
  readonly #host: number;
  readonly #hostPerSequence: number;

  constructor(spec: KernelTableSpec) {
    this.#layers = spec.layers;
    this.#layer = new Curve(spec.layer);
    this.#once = new Curve(spec.once);
    this.#perSequence = new Curve(spec.perSequence);
    this.#attention = new AttentionGrid(spec.attention);
    this.#scale = spec.scale ?? 1;
    this.#host = spec.hostMicros ?? 0;
    this.#hostPerSequence = spec.hostPerSequenceMicros ?? 0;
  }

  micros(shape: Readonly<BatchShape>): number {
    const tokens = shape.prefillTokens + shape.decodeSequences;
    if (tokens === 0) return 0;
    const sequences = shape.prefillSequences + shape.decodeSequences;
    const layer = this.#layer.at(tokens) + this.#attentionMicros(shape);
    const kernels = this.#layers * layer + this.#once.at(tokens) + this.#perSequence.at(sequences);
    return this.#host + this.#hostPerSequence * sequences + this.#scale * kernels;
  }

  #attentionMicros(shape: Readonly<BatchShape>): number {
    const { prefillSequences, prefillTokens, decodeSequences } = shape;
    const decodeContext = decodeSequences > 0 ? shape.decodeContextTokens / decodeSequences : 0;
    if (prefillSequences === 0) return this.#attention.at(0, 0, decodeSequences, decodeContext);
    const chunk = prefillTokens / prefillSequences;
    // The context that gives the average prefill the average number of (token, earlier token) pairs.
    const context = Math.max(0, (shape.prefillPairsTwice / prefillTokens - chunk) / 2);
    const first = this.#attention.at(chunk, context, decodeSequences, decodeContext);
    if (prefillSequences === 1) return first;
    return first + (prefillSequences - 1) * this.#attention.at(chunk, context, 0, 0);
  }
}
