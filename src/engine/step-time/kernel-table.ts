import { AttentionGrid, type AttentionRow } from "./attention-grid.ts";
import type { BatchShape } from "./batch-shape.ts";
import { Curve } from "./curve.ts";
import type { StepTime } from "./step-time.ts";

/** [x, microseconds] */
export type CurvePoint = readonly [x: number, micros: number];

/**
 * Measured kernels put together:
 *
 *   step = base + perToken * tokens
 *        + scale * (layers * (layer(tokens) + attention(batch)) + once(tokens) + perSequence(sequences))
 *
 * `layer` is the sum of a layer's dense kernels (a kernel that runs twice in a layer counts twice) by tokens in the
 * batch, `once` that of the kernels outside the layers, `perSequence` that of the output head and the sampler by
 * sequences. Attention is that of the average prefill together with all decodes at their average context, and for every
 * further prefill of the average prefill alone. Prefills alone, decodes alone and both together are measured apart.
 */
export interface KernelTableSpec {
  readonly kind: "kernel-table";
  readonly layers: number;
  readonly layer: readonly CurvePoint[];
  readonly once: readonly CurvePoint[];
  readonly perSequence: readonly CurvePoint[];
  readonly attention: readonly AttentionRow[];
  readonly scale?: number;
  /** What the kernels do not hold: the host's part, and communication between GPUs. */
  readonly baseMicros?: number;
  readonly perTokenMicros?: number;
}

export class KernelTableStepTime implements StepTime {
  readonly stateless = true;
  readonly #layers: number;
  readonly #layer: Curve;
  readonly #once: Curve;
  readonly #perSequence: Curve;
  readonly #prefills: AttentionGrid | undefined;
  readonly #decodes: AttentionGrid | undefined;
  readonly #mixed: AttentionGrid | undefined;
  readonly #scale: number;
  readonly #base: number;
  readonly #perToken: number;

  constructor(spec: KernelTableSpec) {
    this.#layers = spec.layers;
    this.#layer = new Curve(spec.layer);
    this.#once = new Curve(spec.once);
    this.#perSequence = new Curve(spec.perSequence);
    this.#prefills = gridOf(spec.attention.filter((row) => row[0] > 0 && row[2] === 0));
    this.#decodes = gridOf(spec.attention.filter((row) => row[0] === 0 && row[2] > 0));
    this.#mixed = gridOf(spec.attention.filter((row) => row[0] > 0 && row[2] > 0));
    this.#scale = spec.scale ?? 1;
    this.#base = spec.baseMicros ?? 0;
    this.#perToken = spec.perTokenMicros ?? 0;
  }

  micros(shape: Readonly<BatchShape>): number {
    const tokens = shape.prefillTokens + shape.decodeSequences;
    if (tokens === 0) return 0;
    const sequences = shape.prefillSequences + shape.decodeSequences;
    const layer = this.#layer.at(tokens) + this.#attentionMicros(shape);
    const kernels = this.#layers * layer + this.#once.at(tokens) + this.#perSequence.at(sequences);
    return this.#base + this.#perToken * tokens + this.#scale * kernels;
  }

  #attentionMicros(shape: Readonly<BatchShape>): number {
    const { prefillSequences, prefillTokens, decodeSequences } = shape;
    const decodeContext = decodeSequences > 0 ? shape.decodeContextTokens / decodeSequences : 0;
    const decodes = () => this.#decodes?.at(0, 0, decodeSequences, decodeContext) ?? 0;
    if (prefillSequences === 0) return decodes();
    const chunk = prefillTokens / prefillSequences;
    // The context that gives the average prefill the average number of (token, earlier token) pairs.
    const context = Math.max(0, (shape.prefillPairsTwice / prefillTokens - chunk) / 2);
    const prefill = this.#prefills?.at(chunk, context, 0, 0) ?? 0;
    if (decodeSequences === 0) return prefillSequences * prefill;
    const first = this.#mixed?.at(chunk, context, decodeSequences, decodeContext) ?? prefill + decodes();
    return first + (prefillSequences - 1) * prefill;
  }
}

function gridOf(rows: readonly AttentionRow[]): AttentionGrid | undefined {
  return rows.length > 0 ? new AttentionGrid(rows) : undefined;
}
