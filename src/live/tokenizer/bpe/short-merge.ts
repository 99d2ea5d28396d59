import { NO_RANK, type MergeTable } from "./merge-table.ts";

/** Byte-pair merging of one short piece by searching for the next merge, which needs no queue. */
export class ShortMerge {
  readonly bytesMax: number;
  readonly #merges: MergeTable;
  readonly #byteIds: Int32Array;
  readonly #ids: Int32Array;
  readonly #ranks: Int32Array;

  constructor(merges: MergeTable, byteIds: Int32Array, bytesMax: number) {
    this.bytesMax = bytesMax;
    this.#merges = merges;
    this.#byteIds = byteIds;
    this.#ids = new Int32Array(bytesMax);
    this.#ranks = new Int32Array(bytesMax);
  }

  /** Merges text[from..to), of 1 to `bytesMax` bytes; writes its tokens to `out` at `at` and returns how many. */
  merge(text: Uint8Array, from: number, to: number, out: Int32Array, at: number): number {
    const ids = this.#ids;
    const ranks = this.#ranks;
    let length = to - from;
    for (let i = 0; i < length; i++) ids[i] = this.#byteIds[text[from + i]!]!;
    for (let i = 0; i + 1 < length; i++) ranks[i] = this.#merges.rank(ids[i]!, ids[i + 1]!);
    while (length > 1) {
      let best = 0;
      for (let i = 1; i + 1 < length; i++) if (ranks[i]! < ranks[best]!) best = i;
      const rank = ranks[best]!;
      if (rank === NO_RANK) break;
      ids[best] = this.#merges.made(rank);
      length--;
      for (let i = best + 1; i < length; i++) {
        ids[i] = ids[i + 1]!;
        ranks[i] = ranks[i + 1]!;
      }
      if (best > 0) ranks[best - 1] = this.#merges.rank(ids[best - 1]!, ids[best]!);
      if (best + 1 < length) ranks[best] = this.#merges.rank(ids[best]!, ids[best + 1]!);
    }
    for (let i = 0; i < length; i++) out[at + i] = ids[i]!;
    return length;
  }
}
