import { ABSENT, hashShort, newSeed, PieceTable } from "./piece-table.ts";

const CACHED_BYTES_MAX = 1024;
const PIECES_MAX = 1 << 17;
const PIECE_BYTES_MAX = 1 << 21;
const MULTI_WORDS_MAX = 1 << 20;
const HOT_SLOTS = 1 << 13;
const HOT_SLOT_WORDS = 4;

/**
 * Pieces and their tokens: 2 * token where it is one, else 2 * place + 1 of [count, tokens...] in `multi`. Three steps:
 * a small table of what was used last, which stays in the processor's cache; the vocabulary's own entries, where they
 * are tokens as they are; pieces that were merged before, which start anew when they are full.
 */
export class PieceCache {
  readonly multi = new Int32Array(MULTI_WORDS_MAX);
  readonly #entries: PieceTable | undefined;
  readonly #merged: PieceTable;
  readonly #seed: number;
  /** Low word, high word, length, value; a newer piece takes the slot of an older. */
  readonly #hot = new Int32Array(HOT_SLOT_WORDS * HOT_SLOTS);
  restarts = 0;
  #used = 0;

  constructor(entries: PieceTable | undefined) {
    this.#entries = entries;
    this.#seed = entries?.seed ?? newSeed();
    this.#merged = PieceTable.empty(PIECES_MAX, PIECE_BYTES_MAX, this.#seed);
  }

  /** A piece of 1 to 8 bytes, given as two little-endian words that are zero behind them; ABSENT where it is not known. */
  getShort(low: number, high: number, length: number): number {
    const hot = this.#hot;
    const hash = hashShort(low, high, length, this.#seed);
    const at = HOT_SLOT_WORDS * (hash & (HOT_SLOTS - 1));
    if (hot[at] === low && hot[at + 1] === high && hot[at + 2] === length) return hot[at + 3]!;
    let value = this.#entries === undefined ? ABSENT : this.#entries.getShort(low, high, length, hash);
    if (value === ABSENT) value = this.#merged.getShort(low, high, length, hash);
    if (value === ABSENT) return ABSENT;
    hot[at] = low;
    hot[at + 1] = high;
    hot[at + 2] = length;
    hot[at + 3] = value;
    return value;
  }

  /** A piece of more than 8 bytes, text[from..to), behind which 8 bytes are readable. */
  getLong(text: DataView, from: number, to: number): number {
    const value = this.#entries === undefined ? ABSENT : this.#entries.getLong(text, from, to);
    return value === ABSENT ? this.#merged.getLong(text, from, to) : value;
  }

  remember(text: DataView, from: number, to: number, tokens: Int32Array): void {
    if (to - from > CACHED_BYTES_MAX) return;
    const single = tokens.length === 1;
    if (!single && this.#used + tokens.length + 1 > MULTI_WORDS_MAX) this.#restart();
    const value = single ? 2 * tokens[0]! : 2 * this.#used + 1;
    if (!this.#merged.set(text, from, to, value)) {
      this.#restart();
      return;
    }
    if (single) return;
    this.multi[this.#used++] = tokens.length;
    this.multi.set(tokens, this.#used);
    this.#used += tokens.length;
  }

  #restart(): void {
    this.#merged.clear();
    this.#hot.fill(0);
    this.#used = 0;
    this.restarts++;
  }
}
