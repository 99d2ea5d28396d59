import { type BlockKind, addBlock, type BlockSums, noBlocks, plainEstimate } from "./block-differences.ts";
import { priorFor, reach } from "./confidence-sequence.ts";
import { type SavedHistogram, TimeHistogram } from "./time-histogram.ts";

/** Windows at which it is to be quickest: four are the least that show anything at the levels that limits have. */
const COUNT_PLANNED = 2;
/** The same where blocks in a row are alike: of few nobody knows how much. */
const COUNT_IN_ROW = 30;
/** A time further from its limit than by this factor's logarithm counts as one by that much. */
const EXCESS_MAX = 1;
/** Of blocks, those that are high: above what this share of the earlier ones did not exceed. */
const HIGH_FROM = 2 / 3;
/** Of fewer nobody knows which are high. */
const LEVELS_MIN = 8;

export interface SavedExcess {
  readonly all: BlockSums;
  /** Of quantiles in the tail. */
  readonly high?: BlockSums;
  readonly levels?: SavedHistogram;
}

/**
 * By how much an arm's figure is above its limit, block by block, and what that is at least, at every look together. Where
 * arms have endpoints of their own the window is what was drawn: one in which a pool has the longer prompts shows little.
 *
 * A quantile in the tail of all requests is decided by the blocks that hold it: where a burst makes the p99, quiet blocks show nothing
 * of it, and there are many. So the level is shared by all blocks and the high ones, whose time (figure and limit alike) is
 * above that of two thirds of the blocks before. Which they are does not depend on whose was the longer: an arm that is at its
 * limit is above it in as many of them as below.
 */
export class WindowExcess {
  readonly #all: BlockSums;
  readonly #high: BlockSums;
  readonly #levels: TimeHistogram;

  constructor(saved?: SavedExcess) {
    this.#all = { ...(saved?.all ?? noBlocks()) };
    this.#high = { ...(saved?.high ?? noBlocks()) };
    this.#levels = new TimeHistogram(saved?.levels);
  }

  /**
   * One in which a time was that, and its limit; `isTail`: few requests take as long. It is the logarithm of their ratio, at most 1 either way: the queue of an
   * overloaded pool grows from window to window, and on a scale of its own that growth would look like chance.
   */
  addTime(time: number, limit: number, isTail: boolean): void {
    const excess = Math.min(EXCESS_MAX, Math.max(-EXCESS_MAX, Math.log(time / limit)));
    addBlock(this.#all, excess, 0);
    if (!isTail) return;
    const level = Math.sqrt(time * limit);
    if (this.#levels.count >= LEVELS_MIN && level > this.#levels.quantile(HIGH_FROM)) addBlock(this.#high, excess, 0);
    this.#levels.add(level);
  }

  /** One in which a share was above its limit by so much, and how much it counts. */
  addShare(excess: number, weight: number): void {
    addBlock(this.#all, excess, 0, weight);
  }

  /** How many times its limit a time is at least; NaN where too little is known. */
  timesAtLeast(level: number, kind: BlockKind): number {
    const ends = [this.#all, this.#high]
      .map((sums) => lowOf(sums, level / 2, kind))
      .filter((low) => !Number.isNaN(low));
    return ends.length === 0 ? NaN : Math.exp(Math.max(...ends));
  }

  /** How far above its limit a share is at least; NaN where too little is known. */
  shareAtLeast(level: number, kind: BlockKind): number {
    return lowOf(this.#all, level, kind);
  }

  saved(): SavedExcess {
    if (this.#levels.count === 0) return { all: { ...this.#all } };
    return { all: { ...this.#all }, high: { ...this.#high }, levels: this.#levels.saved() };
  }
}

function lowOf(sums: BlockSums, level: number, kind: BlockKind): number {
  const estimate = plainEstimate(sums, kind);
  const half = reach(estimate, level, priorFor(kind.carriesOver ? COUNT_IN_ROW : COUNT_PLANNED, level));
  return Number.isFinite(half) ? estimate.mean - half : NaN;
}
