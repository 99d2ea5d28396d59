const SLOT_WORDS = 4;
const LOAD_MAX = 0.55;

/** No merge. Larger than any rank. */
export const NO_RANK = 0x7fffffff;

/** Pairs of token ids to the merge that joins them. The lower the rank, the earlier the merge. */
export class MergeTable {
  readonly #slots: Int32Array;
  readonly #mask: number;
  /** Token id that the merge of a rank makes. */
  readonly #made: Int32Array;

  constructor(merges: number) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(16, merges / LOAD_MAX)));
    this.#slots = new Int32Array(SLOT_WORDS * slots).fill(-1);
    this.#mask = slots - 1;
    this.#made = new Int32Array(merges);
  }

  /** Where one pair is listed twice the later one counts, as in the library. */
  set(left: number, right: number, rank: number, made: number): void {
    this.#made[rank] = made;
    let slot = home(left, right) & this.#mask;
    for (;;) {
      const at = SLOT_WORDS * slot;
      const taken = this.#slots[at]!;
      if (taken === -1 || (taken === left && this.#slots[at + 1] === right)) {
        this.#slots[at] = left;
        this.#slots[at + 1] = right;
        this.#slots[at + 2] = rank;
        return;
      }
      slot = (slot + 1) & this.#mask;
    }
  }

  rank(left: number, right: number): number {
    const slots = this.#slots;
    let slot = home(left, right) & this.#mask;
    for (;;) {
      const at = SLOT_WORDS * slot;
      const found = slots[at]!;
      if (found === left && slots[at + 1] === right) return slots[at + 2]!;
      if (found === -1) return NO_RANK;
      slot = (slot + 1) & this.#mask;
    }
  }

  made(rank: number): number {
    return this.#made[rank]!;
  }
}

function home(left: number, right: number): number {
  const h = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca77);
  return h ^ (h >>> 15);
}
