import { randomInt } from "node:crypto";

const SLOT_WORDS = 4;
const SHORT_BYTES = 8;
/** Table load above which a table is full. */
const LOAD_MAX = 0.6;
/** No string has it. */
export const ABSENT = -1;
/** Which bytes of a string's two words belong to it, by its length of 0 to 8 bytes. */
export const LOW_MASKS = Int32Array.of(0, 0xff, 0xffff, 0xffffff, -1, -1, -1, -1, -1);
export const HIGH_MASKS = Int32Array.of(0, 0, 0, 0, 0, 0xff, 0xffff, 0xffffff, -1);

/** What a full table consists of: another one may be made of it, in another thread or process too. */
export interface PieceParts {
  readonly slots: Int32Array;
  /** Of strings longer than 8 bytes. */
  readonly bytes: Uint8Array;
  /** Which strings collide depends on it, so nobody outside knows them. */
  readonly seed: number;
}

/** A seed that cannot be foreseen. */
export function newSeed(): number {
  return randomInt(2 ** 32) | 0;
}

/**
 * Byte strings to integers >= 0, by open addressing. A slot holds a string of up to 8 bytes itself, else its hash and
 * where its bytes are kept, so a match is always a match of the bytes.
 */
export class PieceTable {
  readonly seed: number;
  readonly #slots: Int32Array;
  readonly #mask: number;
  readonly #entriesMax: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #bytesUsed = 0;
  #entries = 0;

  constructor({ slots, bytes, seed }: PieceParts, entriesMax = 0) {
    this.seed = seed;
    this.#slots = slots;
    this.#mask = slots.length / SLOT_WORDS - 1;
    this.#entriesMax = entriesMax;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Room for `entriesMax` strings, those longer than 8 bytes having `bytesMax` bytes together. */
  static empty(entriesMax: number, bytesMax: number, seed: number = newSeed()): PieceTable {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(16, entriesMax / LOAD_MAX)));
    const parts = { slots: new Int32Array(SLOT_WORDS * slots), bytes: new Uint8Array(bytesMax + SHORT_BYTES), seed };
    return new PieceTable(parts, entriesMax);
  }

  get parts(): PieceParts {
    return { slots: this.#slots, bytes: this.#bytes, seed: this.seed };
  }

  /** The value of 1 to 8 bytes, given as two little-endian words that are zero behind them, and their hash by its seed. */
  getShort(low: number, high: number, length: number, hash: number): number {
    const slots = this.#slots;
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const at = SLOT_WORDS * slot;
      if (slots[at] === low && slots[at + 1] === high && slots[at + 2] === length) return slots[at + 3]!;
      if (slots[at + 2] === 0) return ABSENT;
    }
  }

  /** The value of text[from..to), more than 8 bytes. */
  getLong(text: DataView, from: number, to: number): number {
    const length = to - from;
    const hash = hashLong(text, from, to, this.seed);
    const slots = this.#slots;
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const at = SLOT_WORDS * slot;
      const found = slots[at + 2]!;
      if (found === 0) return ABSENT;
      if (found === length && slots[at] === hash && this.#same(slots[at + 1]!, text, from, length))
        return slots[at + 3]!;
    }
  }

  /** Adds text[from..to), which is not there yet. Returns false where there is no room. 8 bytes must be readable behind. */
  set(text: DataView, from: number, to: number, value: number): boolean {
    const length = to - from;
    const short = length <= SHORT_BYTES;
    if (this.#entries >= this.#entriesMax) return false;
    if (!short && this.#bytesUsed + length > this.#bytes.length - SHORT_BYTES) return false;
    const low = text.getInt32(from, true) & LOW_MASKS[Math.min(length, SHORT_BYTES)]!;
    const high = text.getInt32(from + 4, true) & HIGH_MASKS[Math.min(length, SHORT_BYTES)]!;
    const hash = short ? hashShort(low, high, length, this.seed) : hashLong(text, from, to, this.seed);
    const slots = this.#slots;
    let slot = hash & this.#mask;
    while (slots[SLOT_WORDS * slot + 2] !== 0) slot = (slot + 1) & this.#mask;
    const at = SLOT_WORDS * slot;
    slots[at] = short ? low : hash;
    slots[at + 1] = short ? high : this.#keep(text, from, length);
    slots[at + 2] = length;
    slots[at + 3] = value;
    this.#entries++;
    return true;
  }

  clear(): void {
    this.#slots.fill(0);
    this.#bytesUsed = 0;
    this.#entries = 0;
  }

  #same(start: number, text: DataView, from: number, length: number): boolean {
    let i = 0;
    for (; i + 4 <= length; i += 4) {
      if (this.#view.getInt32(start + i, true) !== text.getInt32(from + i, true)) return false;
    }
    for (; i < length; i++) if (this.#bytes[start + i] !== text.getUint8(from + i)) return false;
    return true;
  }

  #keep(text: DataView, from: number, length: number): number {
    const start = this.#bytesUsed;
    for (let i = 0; i < length; i++) this.#bytes[start + i] = text.getUint8(from + i);
    this.#bytesUsed += length;
    return start;
  }
}

export function hashShort(low: number, high: number, length: number, seed: number): number {
  let h = Math.imul(low ^ seed, 0x9e3779b1) ^ Math.imul(high + length, 0x85ebca77);
  h = Math.imul(h ^ (h >>> 15), 0xc2b2ae3d);
  return h ^ (h >>> 13);
}

function hashLong(text: DataView, from: number, to: number, seed: number): number {
  let h = seed;
  let at = from;
  for (; at + 4 <= to; at += 4) h = mix(h, text.getInt32(at, true));
  if (at < to) h = mix(h, text.getInt32(at, true) & LOW_MASKS[to - at]!);
  return h ^ (h >>> 16);
}

function mix(h: number, word: number): number {
  return Math.imul((h << 13) | (h >>> 19), 0x85ebca77) ^ Math.imul(word, 0x9e3779b1);
}
