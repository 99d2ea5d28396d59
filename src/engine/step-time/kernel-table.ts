import type { AttentionRow } from "./attention-grid.ts";
import { AttentionTime, type AttentionImbalance, USUAL_IMBALANCE } from "./attention-time.ts";
import type { BatchShape } from "./batch-shape.ts";
import { Curve } from "./curve.ts";
import { type BoardExchange, exchangeMicros, type RankExchange, rankExchangeMicros } from "./board-exchange.ts";
import { type ExpertTable, ExpertTime } from "./expert-time.ts";
import { graphTokens } from "./graph-tokens.ts";
import type { StepTime } from "./step-time.ts";

/** [x, microseconds] */
export type CurvePoint = readonly [x: number, micros: number];

/**
 * Measured kernels put together:
 *
 *   step = base + perToken * tokens + exchange(tokens)
 *        + scale * (layers * (layer(padded) + experts(tokens) + attention(batch)) + once(padded) + perSequence(sequences))
 *
 * `layer` is the sum of a layer's dense kernels (a kernel that runs twice in a layer counts twice) by tokens in the
 * batch, `once` that of the kernels outside the layers, `perSequence` that of the output head and the sampler by
 * sequences; padded: graphTokens. Attention: AttentionTime.
 */
export interface KernelTableSpec {
  readonly kind: "kernel-table";
  readonly layers: number;
  readonly layer: readonly CurvePoint[];
  readonly once: readonly CurvePoint[];
  readonly perSequence: readonly CurvePoint[];
  readonly attention: readonly AttentionRow[];
  /** USUAL_IMBALANCE when left out. */
  readonly imbalance?: AttentionImbalance;
  /** Of a mixture of experts, whose feed-forward block is then not in `layer`. */
  readonly experts?: ExpertTable;
  /** Where the engine is spread over several GPUs and the kernels are those of one. */
  readonly exchange?: BoardExchange;
  /** Where a mixture's experts are spread over data-parallel ranks. */
  readonly ranks?: RankExchange;
  /** Steps of up to so many tokens are padded to the sizes of CUDA graphs; none when left out. */
  readonly graphTokensMax?: number;
  readonly scale?: number;
  /** What the kernels do not hold, as the host's part. */
  readonly baseMicros?: number;
  readonly perTokenMicros?: number;
}

/** Step time from measured kernels, between whose sizes it interpolates. */
export class KernelTableStepTime implements StepTime {
  readonly stateless = true;
  readonly #layers: number;
  readonly #layer: Curve;
  readonly #once: Curve;
  readonly #perSequence: Curve;
  readonly #attention: AttentionTime;
  readonly #experts: ExpertTime | undefined;
  readonly #exchange: BoardExchange | undefined;
  readonly #ranks: RankExchange | undefined;
  readonly #graphTokensMax: number;
  readonly #scale: number;
  readonly #base: number;
  readonly #perToken: number;

  constructor(spec: KernelTableSpec) {
    this.#layers = spec.layers;
    this.#layer = new Curve(spec.layer);
    this.#once = new Curve(spec.once);
    this.#perSequence = new Curve(spec.perSequence);
    this.#attention = new AttentionTime(spec.attention, spec.imbalance ?? USUAL_IMBALANCE);
    this.#experts = spec.experts && new ExpertTime(spec.experts);
    this.#exchange = spec.exchange;
    this.#ranks = spec.ranks;
    this.#graphTokensMax = spec.graphTokensMax ?? 0;
    this.#scale = spec.scale ?? 1;
    this.#base = spec.baseMicros ?? 0;
    this.#perToken = spec.perTokenMicros ?? 0;
  }

  micros(shape: Readonly<BatchShape>): number {
    const tokens = shape.prefillTokens + shape.decodeSequences;
    if (tokens === 0) return 0;
    return this.#step(shape, tokens, graphTokens(tokens, this.#graphTokensMax), this.#experts?.micros(tokens) ?? 0);
  }

  /**
   * Ranks are padded to the largest of them where all have a graph (vLLM's DP padding), and each rank's experts see the
   * tokens of all.
   */
  together(shapes: readonly Readonly<BatchShape>[]): number {
    const tokens = shapes.map((shape) => Math.max(1, shape.prefillTokens + shape.decodeSequences));
    const largest = Math.max(...tokens);
    const isPadded = largest <= this.#graphTokensMax;
    const padded = isPadded ? tokens.map(() => graphTokens(largest, this.#graphTokensMax)) : tokens;
    const experts = this.#experts?.micros(padded.reduce((sum, count) => sum + count, 0)) ?? 0;
    const sent = this.#ranks === undefined ? 0 : rankExchangeMicros(this.#ranks, this.#layers, padded);
    return sent + Math.max(...shapes.map((shape, i) => this.#step(shape, tokens[i]!, padded[i]!, experts)));
  }

  #step(shape: Readonly<BatchShape>, tokens: number, padded: number, experts: number): number {
    const sequences = Math.max(1, shape.prefillSequences + shape.decodeSequences);
    const layer = this.#layer.at(padded) + experts + this.#attention.micros(shape);
    const kernels = this.#layers * layer + this.#once.at(padded) + this.#perSequence.at(sequences);
    const exchange = this.#exchange === undefined ? 0 : exchangeMicros(this.#exchange, this.#layers, padded);
    return this.#base + this.#perToken * tokens + exchange + this.#scale * kernels;
  }
}
