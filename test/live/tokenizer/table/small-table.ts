import { packBpeTable } from "#live/tokenizer/bpe/bpe-table.ts";

/** A table with a few numbers in each part. */
export function smallTable(first = 7): SharedArrayBuffer {
  return packBpeTable({
    facts: {
      added: [{ id: 300, content: "<|énd|>" }],
      recipe: { digits: 3, composes: false, ignoreMerges: true },
      differing: [0x301],
      seed: -5,
      isPositionless: true,
      surround: { before: [300], behind: [] },
    },
    byteIds: Int32Array.from({ length: 256 }, (_, byte) => byte + first),
    mergeSlots: Int32Array.of(1, 2, 3, 4),
    mergeMade: Int32Array.of(9),
    entrySlots: Int32Array.of(-1, 5, 6, 7),
    entryBytes: Uint8Array.of(8, 9, 10),
    classes: Uint8Array.of(1, 2, 3, 4, 0),
  });
}
