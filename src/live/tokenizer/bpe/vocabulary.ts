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

/** As JSON has it: asked by key it answers in half the time of a Map of its entries, which takes 100 ms to fill. */
type Ids = Readonly<Record<string, unknown>>;

/** Throws an error that states what is wrong, without naming the file. */
export function readVocabulary(model: ModelJson, ignoreMerges: boolean): Vocabulary {
  const ids = model.vocab as Ids;
  const byteIds = Int32Array.from(BYTE_CHARACTERS, (character) => {
    const id = idOf(ids, character);
    if (id === undefined) throw new Error("model.vocab: expected an entry for each of the 256 bytes");
    return id;
  });
  return { byteIds, merges: readMerges(model["merges"], ids), entries: ignoreMerges ? readEntries(ids) : undefined };
}

function readMerges(listed: unknown, ids: Ids): MergeTable {
  if (!Array.isArray(listed)) throw new Error("model.merges: expected an array");
  const table = new MergeTable(listed.length);
  listed.forEach((merge: unknown, rank) => {
    const [left, right] = typeof merge === "string" ? merge.split(" ") : (merge as [string, string]);
    const leftId = idOf(ids, left!);
    const rightId = idOf(ids, right!);
    const made = idOf(ids, `${left}${right}`);
    if (leftId === undefined || rightId === undefined || made === undefined) {
      throw new Error(`model.merges[${rank}]: expected a pair of entries of the vocabulary that join to a third`);
    }
    table.set(leftId, rightId, rank, made);
  });
  return table;
}

/** What every object inherits is no entry. */
function idOf(ids: Ids, entry: string): number | undefined {
  const id = ids[entry];
  return typeof id === "number" ? id : undefined;
}

function readEntries(ids: Ids): PieceTable {
  const bytes = new Uint8Array(ENTRY_BYTES_MAX);
  const view = new DataView(bytes.buffer);
  const entries = Object.keys(ids);
  const table = PieceTable.empty(
    entries.length,
    entries.reduce((sum, { length }) => sum + length, 0),
  );
  for (const entry of entries) {
    const length = writeBytes(entry, bytes.subarray(0, ENTRY_BYTES_MAX - 8));
    if (length > 0) table.set(view, 0, length, 2 * (ids[entry] as number));
  }
  return table;
}

/**
 * The characters by which a byte-level vocabulary writes bytes: printable Latin-1 stands for itself, the other 68 bytes
 * for U+0100 and on, in order.
 */
export const BYTE_CHARACTERS: readonly string[] = alphabet();

function alphabet(): string[] {
  const characters: string[] = [];
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    characters.push(String.fromCharCode(printable ? byte : next++));
  }
  return characters;
}

const BYTE_OF: ReadonlyMap<number, number> = new Map(
  BYTE_CHARACTERS.map((character, byte) => [character.charCodeAt(0), byte]),
);

/** Writes the bytes that a vocabulary entry stands for; returns how many, or -1 where it is not in the alphabet. */
function writeBytes(entry: string, bytes: Uint8Array): number {
  if (entry.length > bytes.length) return -1;
  for (let i = 0; i < entry.length; i++) {
    const byte = BYTE_OF.get(entry.charCodeAt(i));
    if (byte === undefined) return -1;
    bytes[i] = byte;
  }
  return entry.length;
}
