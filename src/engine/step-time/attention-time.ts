import { AttentionGrid, type AttentionRow } from "./attention-grid.ts";
import type { BatchShape } from "./batch-shape.ts";

/**
 * How much decodes of uneven contexts take beyond even ones of the same sum. The kernel spreads (sequence, key head)
 * pairs over the processors of the board; when the others are done, those of the longest sequence still run. Their part
 * of the whole falls with the number of sequences:
 *
 *   attention = max(mean + part * (longest - mean), alone)        part = min(partMax, sequences / decodes)
 *
 * mean, longest: all decodes at the mean context, and at the longest one; alone: the longest decode without the others.
 * A step without a prefill has a partMax of its own: few decodes by themselves are split over the board.
 */
export interface AttentionImbalance {
  /** Both in [0, 1]; 0 for none. */
  readonly partMax: number;
  readonly decodesOnlyPartMax: number;
  /** At least 0. */
  readonly sequences: number;
}

/**
 * Between what uneven batches cost on an RTX 4090 with 8 key heads (0.15, 0.08, 2.5) and on an RTX PRO 6000 with 4 (0.3,
 * 0.05, 3.25), as LLMServingSim measured them (skew.csv), 16 to 256 decodes of up to 8,192 tokens. Either set predicts
 * the other board's within 2 % in the mean, where the mean context alone is 6 to 7 % too cheap.
 */
export const USUAL_IMBALANCE: AttentionImbalance = { partMax: 0.2, decodesOnlyPartMax: 0.06, sequences: 3 };

/**
 * One layer's attention in microseconds, from measured times. Prefills alone, decodes alone and both together are
 * measured apart: of several prefills the average one runs with the decodes, the others as the average one alone.
 */
export class AttentionTime {
  readonly #prefills: AttentionGrid | undefined;
  readonly #decodes: AttentionGrid | undefined;
  readonly #mixed: AttentionGrid | undefined;
  readonly #imbalance: AttentionImbalance;

  constructor(rows: readonly AttentionRow[], imbalance: AttentionImbalance) {
    this.#prefills = gridOf(rows.filter((row) => row[0] > 0 && row[2] === 0));
    this.#decodes = gridOf(rows.filter((row) => row[0] === 0 && row[2] > 0));
    this.#mixed = gridOf(rows.filter((row) => row[0] > 0 && row[2] > 0));
    this.#imbalance = imbalance;
  }

  micros(shape: Readonly<BatchShape>): number {
    const { prefillSequences, prefillTokens, decodeSequences } = shape;
    if (prefillSequences === 0) return this.#uneven(this.#decodes, 0, 0, shape);
    const chunk = prefillTokens / prefillSequences;
    // The context that gives the average prefill the average number of (token, earlier token) pairs.
    const context = Math.max(0, (shape.prefillPairsTwice / prefillTokens - chunk) / 2);
    const prefill = this.#prefills?.at(chunk, context, 0, 0) ?? 0;
    if (decodeSequences === 0) return prefillSequences * prefill;
    const first =
      this.#mixed === undefined
        ? prefill + this.#uneven(this.#decodes, 0, 0, shape)
        : this.#uneven(this.#mixed, chunk, context, shape);
    return first + (prefillSequences - 1) * prefill;
  }

  #uneven(grid: AttentionGrid | undefined, chunk: number, context: number, shape: Readonly<BatchShape>): number {
    const { decodeSequences, decodeContextTokens, decodeContextMaxTokens } = shape;
    if (grid === undefined || decodeSequences === 0) return 0;
    const mean = grid.at(chunk, context, decodeSequences, decodeContextTokens / decodeSequences);
    const { partMax, decodesOnlyPartMax, sequences } = this.#imbalance;
    const most = chunk === 0 ? decodesOnlyPartMax : partMax;
    if (decodeSequences === 1 || most === 0) return mean;
    const longest = grid.at(chunk, context, decodeSequences, decodeContextMaxTokens);
    const alone = grid.at(chunk, context, 1, decodeContextMaxTokens);
    const part = Math.min(most, sequences / decodeSequences);
    return Math.max(mean + part * Math.max(0, longest - mean), alone);
  }
}

function gridOf(rows: readonly AttentionRow[]): AttentionGrid | undefined {
  return rows.length > 0 ? new AttentionGrid(rows) : undefined;
}
