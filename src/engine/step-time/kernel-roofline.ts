import type { BatchShape } from "./batch-shape.ts";
import { activatedExperts } from "./expert-time.ts";
import { graphTokens } from "./graph-tokens.ts";
import {
  attentionBytes,
  attentionParameters,
  expertLayers,
  feedForwardParameters,
  headSizeOf,
  kvNumbersPerLayer,
  type ModelShape,
} from "./model-shape.ts";
import type { StepTime } from "./step-time.ts";

/** What a board does at most, by its data sheet. */
export interface BoardShape {
  /** Dense peak for 16-bit numbers. */
  readonly tflopsPeak: number;
  /** The same for 8-bit ones; tflopsPeak where the board has none. */
  readonly tflopsPeakNarrow?: number;
  readonly bandwidthTbs: number;
  /** From one board to the others together, in one direction. */
  readonly linkGbs: number;
}

/** What kernels and host reach of it: src/engine/achieved.ts. */
export interface Achieved {
  /** Shares of the data sheet, in (0, 1]. */
  readonly bandwidth: number;
  readonly compute: number;
  /** Of the peak for 8-bit numbers; `compute` when left out. */
  readonly narrowCompute?: number;
  readonly linkBandwidth: number;
  /** Of the achieved bandwidth, what reading experts and reading keys and values reach. */
  readonly expertBandwidth: number;
  readonly kvBandwidth: number;
  /** Of every step: composing it, launching its graph, sampling, and handing tokens out. */
  readonly stepMicros: number;
  readonly sequenceMicros: number;
  /** Of every layer: small kernels and the gaps between kernels. */
  readonly layerMicros: number;
  /** What experts add to a layer. */
  readonly expertLayerMicros: number;
  /** What latent attention adds to a layer: its projections down and up again are small kernels too. */
  readonly latentLayerMicros: number;
  /** What a step without graphs adds to a layer, and to one with experts. */
  readonly eagerLayerMicros: number;
  readonly eagerExpertLayerMicros: number;
  /** Of one sum over all boards, whatever its size. */
  readonly reduceMicros: number;
}

/**
 * A roofline for each group of kernels, with what boards achieve of their data sheets, and the time that is neither
 * arithmetic nor memory. For a step of T tokens (padded to a CUDA graph's), S sequences, n boards:
 *
 *   step = stepMicros + sequenceMicros * S
 *        + layers * (layerMicros, with latent attention + latentLayerMicros) + layers with experts * expertLayerMicros
 *          (the same of eager ones, beyond graphs)
 *        + dense(T) + experts(T) + head(S) + attention + sums
 *
 *   dense, experts, head = root of memory^2 + compute^2
 *       memory  = bytes of the weights read / n / (bandwidth * share), of experts those that T tokens touch
 *       compute = 2 * weights * tokens / n / (peak * share)
 *   attention = bytes of the decodes' and earlier chunks' keys and values / (bandwidth * share * kvBandwidth)
 *             + 4 * heads * head size * pairs of a prefilled token and one before it / n / (peak * compute)
 *   sums      = 2 layers * (reduceMicros + T * hidden * bytes * 2 (n - 1) / n / (link * linkBandwidth))
 *
 * The root joins both limits smoothly: between them a matrix product takes longer than either alone.
 */
export interface KernelRooflineSpec {
  readonly kind: "kernel-roofline";
  readonly model: ModelShape;
  readonly vocabulary: number;
  readonly board: BoardShape;
  readonly achieved: Achieved;
  readonly tensorParallel: number;
  /** Steps of up to so many tokens run as CUDA graphs; 0 for none (enforce_eager). */
  readonly graphTokensMax: number;
}

/** Step time from what a model computes and reads, and what a board achieves. */
export class KernelRooflineStepTime implements StepTime {
  readonly stateless = true;
  readonly #base: number;
  readonly #perSequence: number;
  readonly #eager: number;
  readonly #graphTokensMax: number;
  readonly #denseMemory: number;
  readonly #densePerToken: number;
  readonly #expertMemory: number;
  readonly #expertPerToken: number;
  readonly #expertCount: number;
  readonly #expertsPerToken: number;
  readonly #headMemory: number;
  readonly #headPerSequence: number;
  readonly #perContextToken: number;
  readonly #perWindowToken: number;
  readonly #windowTokens: number;
  readonly #perPair: number;
  readonly #sums: number;
  readonly #sumPerToken: number;
  /** Experts that a step touches, by its tokens. */
  readonly #touched: number[] = [0];

  constructor(spec: KernelRooflineSpec) {
    const { model, vocabulary, board, achieved, tensorParallel: boards } = spec;
    const { layers, hidden, bytesPerParameter, experts } = model;
    const weightBytes = model.weightBytes ?? bytesPerParameter;
    const bytesPerMicro = board.bandwidthTbs * 1e6 * achieved.bandwidth;
    const narrow = weightBytes <= 1 && model.narrowMultiply === true;
    const wideFlops = board.tflopsPeak * 1e6 * achieved.compute;
    const narrowPeak = (board.tflopsPeakNarrow ?? board.tflopsPeak) * 1e6;
    const flops = narrow ? narrowPeak * (achieved.narrowCompute ?? achieved.compute) : wideFlops;
    const mixed = expertLayers(model);
    const dense =
      (layers - mixed) * feedForwardParameters(model, model.denseLayers?.intermediate ?? model.intermediate) +
      mixed * feedForwardParameters(model, experts?.sharedIntermediate ?? 0);
    const attention = layers * attentionParameters(model);
    const narrowAttention = narrow && (model.attentionWeightBytes ?? weightBytes) <= 1;

    const layerMicros = achieved.layerMicros + (model.latent === undefined ? 0 : achieved.latentLayerMicros);
    this.#base = achieved.stepMicros + layers * layerMicros + mixed * achieved.expertLayerMicros;
    this.#perSequence = achieved.sequenceMicros;
    this.#eager = layers * achieved.eagerLayerMicros + mixed * achieved.eagerExpertLayerMicros;
    this.#graphTokensMax = spec.graphTokensMax;
    const denseBytes = layers * attentionBytes(model) + dense * weightBytes;
    this.#denseMemory = denseBytes / boards / bytesPerMicro;
    this.#densePerToken =
      (2 * dense) / boards / flops + (2 * attention) / boards / (narrowAttention ? flops : wideFlops);
    const expert = feedForwardParameters(model, model.intermediate);
    this.#expertCount = experts?.count ?? 0;
    this.#expertsPerToken = experts?.perToken ?? 0;
    this.#expertMemory = (mixed * expert * weightBytes) / boards / (bytesPerMicro * achieved.expertBandwidth);
    this.#expertPerToken = (2 * mixed * expert * this.#expertsPerToken) / boards / flops;
    this.#headMemory = (vocabulary * hidden * bytesPerParameter) / boards / bytesPerMicro;
    this.#headPerSequence = (2 * vocabulary * hidden) / boards / wideFlops;
    const kvMicros =
      (kvNumbersPerLayer(model, boards) * (model.kvBytes ?? bytesPerParameter)) /
      (bytesPerMicro * achieved.kvBandwidth);
    const windowed = model.window?.layers ?? 0;
    this.#perContextToken = (layers - windowed) * kvMicros;
    this.#perWindowToken = windowed * kvMicros;
    this.#windowTokens = model.window?.tokens ?? 0;
    const headSizes = pairSize(model);
    this.#perPair = (2 * layers * model.heads * headSizes) / boards / wideFlops;
    this.#sums = boards > 1 ? 2 * layers * achieved.reduceMicros : 0;
    const link = board.linkGbs * 1e3 * achieved.linkBandwidth;
    this.#sumPerToken = boards > 1 ? (2 * layers * hidden * bytesPerParameter * 2 * (boards - 1)) / boards / link : 0;
  }

  micros(shape: Readonly<BatchShape>): number {
    const { prefillTokens, prefillSequences, decodeSequences } = shape;
    const computed = prefillTokens + decodeSequences;
    if (computed === 0) return 0;
    const tokens = graphTokens(computed, this.#graphTokensMax);
    const sequences = prefillSequences + decodeSequences;
    const context = shape.decodeContextTokens + decodeSequences + shape.prefillContextTokens;
    return (
      this.#base +
      this.#perSequence * sequences +
      (computed > this.#graphTokensMax ? this.#eager : 0) +
      joined(this.#denseMemory, this.#densePerToken * tokens) +
      (this.#expertCount > 0 ? joined(this.#expertMemory * this.#experts(tokens), this.#expertPerToken * tokens) : 0) +
      joined(this.#headMemory, this.#headPerSequence * sequences) +
      this.#perContextToken * context +
      (this.#perWindowToken > 0 ? this.#perWindowToken * Math.min(context, this.#windowTokens * sequences) : 0) +
      this.#perPair * (shape.prefillPairsTwice / 2) +
      this.#sums +
      this.#sumPerToken * tokens
    );
  }

  /** activatedExperts, each number of tokens computed once. */
  #experts(tokens: number): number {
    const touched = this.#touched;
    const known = touched[tokens];
    if (known !== undefined) return known;
    const last = Math.min(tokens, TOKENS_KEPT);
    for (let i = touched.length; i <= last; i++) {
      touched.push(activatedExperts(this.#expertCount, this.#expertsPerToken, i));
    }
    return touched[last]!;
  }
}

/** With so many tokens all experts of any model are touched. */
const TOKENS_KEPT = 4096;

function joined(memory: number, compute: number): number {
  return Math.sqrt(memory * memory + compute * compute);
}

/** Numbers that a query and a key, and a weight and a value, have of each other, together. */
function pairSize(model: ModelShape): number {
  const { latent } = model;
  if (latent === undefined) return 2 * headSizeOf(model);
  return latent.plainSize + latent.rotarySize + latent.valueSize;
}
