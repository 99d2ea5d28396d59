import type { ChainValue } from "#core/prompt/block-hasher.ts";
import type { EngineHash } from "./kv-event.ts";

const VALUE_WORDS = 8;
const KEY_WORDS = 2;
const REFERENCES = KEY_WORDS + VALUE_WORDS;
const HOST_REFERENCES = REFERENCES + 1;
const HASHES = HOST_REFERENCES + 1;
const PLACES_MIN = 64;
/** Places per block, at least. */
const SPARSENESS = 1.5;
export const NO_PLACE = -1;

/**
 * The blocks that one engine has, by its own hashes: the value of our chain behind each, from which the next one goes on,
 * and how many copies the engine has stored. Open addressing; what is removed leaves no trace.
 */
export class EngineBlockTable {
  /** Blocks of ours in one of the engine's. */
  readonly #parts: number;
  /**
   * Words of a place: the engine's hash, our chain value, references on the device + 1 (0 for a free place), references in
   * the host's memory, our hashes if several.
   */
  readonly #stride: number;
  #words: Int32Array;
  #mask = PLACES_MIN - 1;
  #size = 0;

  constructor(parts: number) {
    this.#parts = parts;
    this.#stride = HASHES + (parts > 1 ? 2 * parts : 0);
    this.#words = new Int32Array(PLACES_MIN * this.#stride);
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#words.byteLength;
  }

  /** Where the block is; NO_PLACE where it is not known. Valid until the next `add` or `remove`. */
  find({ low, high }: EngineHash): number {
    const place = this.#placeOf(low, high);
    return this.#words[place + REFERENCES] === 0 ? NO_PLACE : place;
  }

  valueAt(place: number, value: ChainValue): void {
    for (let i = 0; i < VALUE_WORDS; i++) value[i] = this.#words[place + KEY_WORDS + i]!;
  }

  /** Writes our hashes of the block there, two words each. */
  hashesAt(place: number, hashes: Int32Array, firstBlock: number): void {
    const from = place + (this.#parts > 1 ? HASHES : KEY_WORDS);
    for (let i = 0; i < 2 * this.#parts; i++) hashes[2 * firstBlock + i] = this.#words[from + i]!;
  }

  /** One copy more, on the device or in the host's memory. `hashes` are ours, from `firstBlock` on. */
  add(hash: EngineHash, value: ChainValue, hashes: Int32Array, firstBlock: number, inHost: boolean): void {
    const { low, high } = hash;
    let place = this.#placeOf(low, high);
    const words = this.#words;
    if (words[place + REFERENCES] !== 0) {
      words[place + (inHost ? HOST_REFERENCES : REFERENCES)]!++;
      return;
    }
    if (SPARSENESS * (this.#size + 1) > this.#mask + 1) {
      this.#grow();
      place = this.#placeOf(low, high);
    }
    this.#size++;
    const to = this.#words;
    to[place] = low;
    to[place + 1] = high;
    for (let i = 0; i < VALUE_WORDS; i++) to[place + KEY_WORDS + i] = value[i]!;
    to[place + REFERENCES] = inHost ? 1 : 2;
    to[place + HOST_REFERENCES] = inHost ? 1 : 0;
    if (this.#parts === 1) return;
    for (let i = 0; i < 2 * this.#parts; i++) to[place + HASHES + i] = hashes[2 * firstBlock + i]!;
  }

  /** One copy less of the block there. One that the host's memory has keeps its name. */
  removeAt(place: number): void {
    const words = this.#words;
    if (words[place + REFERENCES]! > 2) words[place + REFERENCES]!--;
    else if (words[place + HOST_REFERENCES]! > 0) words[place + REFERENCES] = 1;
    else this.#unlink(place);
  }

  /** One copy more of the block there, in the host's memory. */
  addHostAt(place: number): void {
    this.#words[place + HOST_REFERENCES]!++;
  }

  removeHostAt(place: number): void {
    const words = this.#words;
    if (words[place + HOST_REFERENCES]! > 1) words[place + HOST_REFERENCES]!--;
    else {
      words[place + HOST_REFERENCES] = 0;
      if (words[place + REFERENCES] === 1) this.#unlink(place);
    }
  }

  /** Nobody knows any more how many copies there are: each is gone with its next removal. */
  forgetCopies(): void {
    for (let place = 0; place < this.#words.length; place += this.#stride) {
      if (this.#words[place + REFERENCES] === 0) continue;
      this.#words[place + REFERENCES] = 1;
      this.#words[place + HOST_REFERENCES] = 0;
    }
  }

  clear(): void {
    this.#words = new Int32Array(PLACES_MIN * this.#stride);
    this.#mask = PLACES_MIN - 1;
    this.#size = 0;
  }

  /** Its place, or the free one where it belongs. */
  #placeOf(low: number, high: number): number {
    const words = this.#words;
    for (let i = homeOf(low) & this.#mask; ; i = (i + 1) & this.#mask) {
      const place = i * this.#stride;
      if (words[place + REFERENCES] === 0 || (words[place] === low && words[place + 1] === high)) return place;
    }
  }

  /** Closes the gap by moving later blocks of the cluster forward. */
  #unlink(emptied: number): void {
    const [words, mask, stride] = [this.#words, this.#mask, this.#stride];
    this.#size--;
    let gap = emptied / stride;
    for (let i = (gap + 1) & mask; words[i * stride + REFERENCES] !== 0; i = (i + 1) & mask) {
      const home = homeOf(words[i * stride]!) & mask;
      if (((i - home) & mask) < ((i - gap) & mask)) continue;
      words.copyWithin(gap * stride, i * stride, (i + 1) * stride);
      gap = i;
    }
    words[gap * stride + REFERENCES] = 0;
  }

  #grow(): void {
    const before = this.#words;
    this.#words = new Int32Array(2 * before.length);
    this.#mask = 2 * this.#mask + 1;
    for (let place = 0; place < before.length; place += this.#stride) {
      if (before[place + REFERENCES] === 0) continue;
      this.#words.set(before.subarray(place, place + this.#stride), this.#placeOf(before[place]!, before[place + 1]!));
    }
  }
}

/** Place before masking. The low word is a hash already, but an engine may count. */
function homeOf(low: number): number {
  const mixed = Math.imul(low, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
