const SLOT_WORDS = 4;
const LOAD_MAX = 0.55;

/** No merge. Larger than any rank. */
export const NO_RANK = 0x7fffffff;

/** What a table consists of: another one may be made of it, in another thread or process too. */
export interface MergeParts {
  readonly slots: Int32Array;
  /** Token id that the merge of a rank makes. */
  readonly made: Int32Array;
}

/** Pairs of token ids to the merge that joins them. The lower the rank, the earlier the merge. */
export class MergeTable {
  readonly #slots: Int32Array;
  readonly #mask: number;
  readonly #made: Int32Array;

  /** Room for so many merges, or those of a table that was filled before. */
  constructor(merges: number | MergeParts) {
    const { slots, made } = typeof merges === "number" ? emptyParts(merges) : merges;
    this.#slots = slots;
    this.#mask = slots.length / SLOT_WORDS - 1;
    this.#made = made;
  }

  get parts(): MergeParts {
    return { slots: this.#slots, made: this.#made };
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

function emptyParts(merges: number): MergeParts {
  const slots = 2 ** Math.ceil(Math.log2(Math.max(16, merges / LOAD_MAX)));
  return { slots: new Int32Array(SLOT_WORDS * slots).fill(-1), made: new Int32Array(merges) };
}
