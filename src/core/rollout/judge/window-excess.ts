import { type BlockKind, addBlock, type BlockSums, noBlocks, plainEstimate } from "./block-differences.ts";
import { priorFor, reach } from "./confidence-sequence.ts";
import { type SavedHistogram, TimeHistogram } from "./time-histogram.ts";

/** Windows at which it is to be quickest: four are the least that show anything at the levels that limits have. */
const COUNT_PLANNED = 2;
/** The same where blocks in a row are alike: of few nobody knows how much. */
const COUNT_IN_ROW = 30;
/** A time further from its limit than by this factor's logarithm counts as one by that much. */
const EXCESS_MAX = 1;
/**
 * Variance that a value at that bound has at least: it is some value beyond it. If sides are drawn evenly, n values at the
 * bound are all on one side with a probability of 2^-n; the t-test's likelihood ratio of n equal values grows without end,
 * and with this variance like (1 + 3)^(n / 2), which is as fast.
 */
const BOUND_VARIANCE = EXCESS_MAX ** 2 / 3;
/** Of blocks, those that are high: the third with the longest times, a third of them, and a third of those. */
const HIGH_PARTS: readonly number[] = [1 / 3, 1 / 9, 1 / 27];
/** So many of the earlier ones must have been high, or nobody knows which are. */
const HIGH_MIN = 8 / 3;

export interface SavedExcess {
  readonly all: BlockSums;
  /** Of quantiles in the tail, by how high; an earlier version saved the widest part alone. */
  readonly high?: BlockSums | readonly BlockSums[];
  readonly levels?: SavedHistogram;
  /** Absent in what earlier versions saved. */
  readonly explained?: Explained;
  /** Values at the bound, of all blocks and of the high ones; absent where none is, and in what earlier versions saved. */
  readonly bounded?: readonly number[];
}

/** Sums over blocks, of logarithms of what was measured times what was predicted, and of the latter's squares. */
interface Explained {
  product: number;
  square: number;
}

/** Before anything is known predictions are trusted as if they had been right of one block that differs this much. */
const TRUSTED: Readonly<Explained> = { product: 0.25, square: 0.25 };

/**
 * By how much an arm's figure is above its limit, block by block, and what that is at least, at every look together. Where
 * arms have endpoints of their own the window is what was drawn: one in which a pool has the longer prompts shows little.
 *
 * A quantile in the tail of all requests is decided by the blocks that hold it: where a burst makes the p99, quiet blocks show
 * nothing of it, and there are many. So the level is shared by all blocks and the high ones, whose time (figure and limit
 * alike) is above that of two thirds, eight ninths and more of the blocks before; a burst that outlasts both windows of a
 * block meets both arms, and shows most. Which they are does not depend on whose was the longer: an arm that is at its limit
 * is above it in as many of them as below.
 *
 * Where the simulator has predicted the requests, what it expects the two windows to differ by is taken away first: a burst
 * in one of them is seen in the prediction too. As much of it as it has explained in the blocks before; neither that nor the
 * prediction depends on which arm had which window.
 */
export class WindowExcess {
  readonly #all: Excesses;
  readonly #high: readonly Excesses[];
  readonly #levels: TimeHistogram;
  readonly #explained: Explained;

  constructor(saved?: SavedExcess) {
    const high = saved?.high === undefined ? [] : [saved.high].flat();
    const [all, ...parts] = [saved?.all, ...HIGH_PARTS.map((_, i) => high[i])].map((sums, i) => {
      return { sums: { ...(sums ?? noBlocks()) }, bounded: saved?.bounded?.[i] ?? 0 };
    });
    this.#all = all!;
    this.#high = parts;
    this.#levels = new TimeHistogram(saved?.levels);
    this.#explained = { ...(saved?.explained ?? TRUSTED) };
  }

  /**
   * One in which a time was that, and its limit; `isTail`: few requests take as long; `expected`: logarithm of the ratio that
   * is predicted of the windows, whatever their arms. It is the logarithm of their ratio, at most 1 either way: the queue of an
   * overloaded pool grows from window to window, and on a scale of its own that growth would look like chance.
   */
  addTime(time: number, limit: number, isTail: boolean, expected = 0): void {
    const ratio = Math.log(time / limit);
    const { product, square } = this.#explained;
    const left = ratio - Math.min(1, Math.max(0, product / square)) * expected;
    this.#explained.product += bounded(ratio) * bounded(expected);
    this.#explained.square += bounded(expected) ** 2;
    addExcess(this.#all, left);
    if (!isTail) return;
    const level = Math.sqrt(time * limit);
    HIGH_PARTS.forEach((part, i) => {
      const isKnown = this.#levels.count * part >= HIGH_MIN;
      if (isKnown && level > this.#levels.quantile(1 - part)) addExcess(this.#high[i]!, left);
    });
    this.#levels.add(level);
  }

  /** One in which a share was above its limit by so much, and how much it counts. */
  addShare(excess: number, weight: number): void {
    addBlock(this.#all.sums, excess, 0, weight);
  }

  /** How many times its limit a time is at least; NaN where too little is known. */
  timesAtLeast(level: number, kind: BlockKind): number {
    const shown = this.#levels.count === 0 ? [this.#all] : [this.#all, ...this.#high];
    const ends = shown.map((one) => lowOf(one, level / shown.length, kind)).filter((low) => !Number.isNaN(low));
    return ends.length === 0 ? NaN : Math.exp(Math.max(...ends));
  }

  /** How far above its limit a share is at least; NaN where too little is known. */
  shareAtLeast(level: number, kind: BlockKind): number {
    return lowOf(this.#all, level, kind);
  }

  saved(): SavedExcess {
    const { square } = this.#explained;
    const both = [this.#all, ...this.#high];
    const always = {
      all: { ...this.#all.sums },
      ...(square > TRUSTED.square && { explained: { ...this.#explained } }),
      ...(this.#all.bounded > 0 && { bounded: both.map((one) => one.bounded) }),
    };
    if (this.#levels.count === 0) return always;
    return { ...always, high: this.#high.map(({ sums }) => ({ ...sums })), levels: this.#levels.saved() };
  }
}

/** Blocks, and how many of their values are at the bound. */
interface Excesses {
  readonly sums: BlockSums;
  bounded: number;
}

function addExcess(to: Excesses, ratio: number): void {
  if (Math.abs(ratio) >= EXCESS_MAX) to.bounded++;
  addBlock(to.sums, bounded(ratio), 0);
}

function bounded(ratio: number): number {
  return Math.min(EXCESS_MAX, Math.max(-EXCESS_MAX, ratio));
}

function lowOf({ sums, bounded: atBound }: Excesses, level: number, kind: BlockKind): number {
  const estimate = plainEstimate(sums, kind);
  const least = Math.sqrt((atBound / sums.count) * BOUND_VARIANCE);
  const known = { ...estimate, deviation: Math.max(least, estimate.deviation) };
  const half = reach(known, level, priorFor(kind.carriesOver ? COUNT_IN_ROW : COUNT_PLANNED, level));
  return Number.isFinite(half) ? estimate.mean - half : NaN;
}
