import { createHash } from "node:crypto";
import type { AddedToken } from "./added-tokens.ts";
import type { Recipe } from "./recipe.ts";

/** What of a tokenizer.json is no table. */
export interface BpeFacts {
  readonly added: readonly AddedToken[];
  readonly recipe: Recipe;
  /** Code points that the library composes (NFC) otherwise than JavaScript; none where text is taken as it is. */
  readonly differing: readonly number[];
  /** Which strings collide in the table of entries. */
  readonly seed: number;
  /** A text has the same tokens wherever it stands: nothing is put before the first word. */
  readonly isPositionless: boolean;
  /** Token ids that its post-processor puts around a text; undefined where it changes the text's own. */
  readonly surround: { readonly before: readonly number[]; readonly behind: readonly number[] } | undefined;
}

/**
 * Everything that encoding reads of a byte-level BPE tokenizer.json, as plain arrays: they can lie in memory that threads
 * share, and in a file. Llama 3 with 128,000 entries and 280,000 merges takes 15 MB, where the text of its file parsed
 * and the library's own model take 175.
 */
export interface BpeTable {
  readonly facts: BpeFacts;
  /** Token of each single byte. */
  readonly byteIds: Int32Array;
  /** Of a MergeTable. */
  readonly mergeSlots: Int32Array;
  readonly mergeMade: Int32Array;
  /** Of a PieceTable with twice the token of whole entries; empty where pieces are always merged. */
  readonly entrySlots: Int32Array;
  readonly entryBytes: Uint8Array;
  /** Class of every code point. */
  readonly classes: Uint8Array;
}

const SECTIONS = ["byteIds", "mergeSlots", "mergeMade", "entrySlots", "entryBytes", "classes"] as const;

/** "gnom", then the layout's version, bytes in all, bytes of the JSON, and a digest of what is behind the digest. */
const MAGIC = 0x6d6f6e67;
export const BPE_TABLE_VERSION = 2;
const HEAD_BYTES = 16;
const DIGEST_BYTES = 32;
const ALIGNMENT_BYTES = 16;

interface Layout {
  readonly facts: BpeFacts;
  /** Offset in bytes and elements of each section. */
  readonly sections: Readonly<Record<(typeof SECTIONS)[number], readonly [number, number]>>;
}

/** The table in one piece of memory that threads may share, with a digest. */
export function packBpeTable(table: BpeTable): SharedArrayBuffer {
  // Offsets stand in the JSON before them, so it is made as long as it can get.
  const jsonBytes = aligned(Buffer.byteLength(layoutText(table, 0)) + SECTIONS.length * 2 * String(2 ** 32).length);
  const first = aligned(HEAD_BYTES + DIGEST_BYTES) + jsonBytes;
  const text = layoutText(table, first);
  const total = SECTIONS.reduce((end, name) => end + aligned(table[name].byteLength), first);
  const buffer = new SharedArrayBuffer(total);
  const bytes = new Uint8Array(buffer);
  new Int32Array(buffer, 0, 4).set([MAGIC, BPE_TABLE_VERSION, total, jsonBytes]);
  bytes.fill(0x20, HEAD_BYTES + DIGEST_BYTES, first);
  bytes.set(Buffer.from(text), HEAD_BYTES + DIGEST_BYTES);
  let at = first;
  for (const name of SECTIONS) {
    const { buffer: from, byteOffset, byteLength } = table[name];
    bytes.set(new Uint8Array(from, byteOffset, byteLength), at);
    at += aligned(byteLength);
  }
  bytes.set(digestOf(bytes), HEAD_BYTES);
  return buffer;
}

/** Undefined for anything but a whole table of this layout. */
export function openBpeTable(buffer: SharedArrayBuffer): BpeTable | undefined {
  if (buffer.byteLength < HEAD_BYTES + DIGEST_BYTES) return undefined;
  const [magic, version, total, jsonBytes] = new Int32Array(buffer, 0, 4);
  if (magic !== MAGIC || version !== BPE_TABLE_VERSION || total !== buffer.byteLength) return undefined;
  const bytes = new Uint8Array(buffer);
  const digest = Buffer.from(bytes.subarray(HEAD_BYTES, HEAD_BYTES + DIGEST_BYTES));
  if (!digest.equals(digestOf(bytes))) return undefined;
  const jsonFrom = HEAD_BYTES + DIGEST_BYTES;
  const { facts, sections } = JSON.parse(
    Buffer.from(bytes.slice(jsonFrom, jsonFrom + jsonBytes!)).toString(),
  ) as Layout;
  const words = (name: (typeof SECTIONS)[number]): Int32Array => new Int32Array(buffer, ...sections[name]);
  return {
    facts,
    byteIds: words("byteIds"),
    mergeSlots: words("mergeSlots"),
    mergeMade: words("mergeMade"),
    entrySlots: words("entrySlots"),
    entryBytes: new Uint8Array(buffer, ...sections.entryBytes),
    classes: new Uint8Array(buffer, ...sections.classes),
  };
}

function layoutText(table: BpeTable, first: number): string {
  let at = first;
  const sections: Record<string, [number, number]> = {};
  for (const name of SECTIONS) {
    sections[name] = [at, table[name].length];
    at += aligned(table[name].byteLength);
  }
  return JSON.stringify({ facts: table.facts, sections });
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash("sha256")
    .update(bytes.subarray(0, HEAD_BYTES))
    .update(bytes.subarray(HEAD_BYTES + DIGEST_BYTES))
    .digest();
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
}
