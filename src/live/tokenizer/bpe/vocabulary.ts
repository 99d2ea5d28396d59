import { BYTE_CHARACTERS, writeBytes } from "./byte-alphabet.ts";
import { MergeTable } from "./merge-table.ts";
import { PieceTable } from "./piece-table.ts";
import type { ModelJson } from "./tokenizer-json.ts";

const ENTRY_BYTES_MAX = 4096;

/** A byte-level BPE vocabulary in the form that encoding reads. */
export interface Vocabulary {
  /** Token of each single byte. */
  readonly byteIds: Int32Array;
  readonly merges: MergeTable;
  /** Twice the token of whole entries, by their bytes; undefined where pieces are always merged. */
  readonly entries: PieceTable | undefined;
}

/** Throws an error that states what is wrong, without naming the file. */
export function readVocabulary(model: ModelJson, ignoreMerges: boolean): Vocabulary {
  const ids = new Map(Object.entries(model.vocab as Record<string, number>));
  const byteIds = Int32Array.from(BYTE_CHARACTERS, (character) => {
    const id = ids.get(character);
    if (id === undefined) throw new Error("model.vocab: expected an entry for each of the 256 bytes");
    return id;
  });
  return { byteIds, merges: readMerges(model["merges"], ids), entries: ignoreMerges ? readEntries(ids) : undefined };
}

function readMerges(listed: unknown, ids: ReadonlyMap<string, number>): MergeTable {
  if (!Array.isArray(listed)) throw new Error("model.merges: expected an array");
  const table = new MergeTable(listed.length);
  listed.forEach((merge: unknown, rank) => {
    const [left, right] = typeof merge === "string" ? merge.split(" ") : (merge as [string, string]);
    const leftId = ids.get(left!);
    const rightId = ids.get(right!);
    const made = ids.get(`${left}${right}`);
    if (leftId === undefined || rightId === undefined || made === undefined) {
      throw new Error(`model.merges[${rank}]: expected a pair of entries of the vocabulary that join to a third`);
    }
    table.set(leftId, rightId, rank, made);
  });
  return table;
}

function readEntries(ids: ReadonlyMap<string, number>): PieceTable {
  const bytes = new Uint8Array(ENTRY_BYTES_MAX);
  const view = new DataView(bytes.buffer);
  let total = 0;
  for (const entry of ids.keys()) total += entry.length;
  const table = PieceTable.empty(ids.size, total);
  for (const [entry, id] of ids) {
    const length = writeBytes(entry, bytes.subarray(0, ENTRY_BYTES_MAX - 8));
    if (length > 0) table.set(view, 0, length, 2 * id);
  }
  return table;
}
