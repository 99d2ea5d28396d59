import { compress } from "./blake3-compress.ts";
import type { BlockHasher, ChainValue } from "./block-hasher.ts";

const VALUE_WORDS = 8;
const COMPRESS_WORDS = 16;
const CHUNK_WORDS = 256;
const WORD_BYTES = 4;

const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;

const IV = Int32Array.of(
  0x6a09e667,
  0xbb67ae85,
  0x3c6ef372,
  0xa54ff53a,
  0x510e527f,
  0x9b05688c,
  0x1f83d9ab,
  0x5be0cd19,
);

/**
 * BLAKE3 of inputs that are all of one size, without allocating. Unkeyed, 32 bytes of output.
 * Source: O'Connor, Aumasson, Neves, Wilcox-O'Hearn, "BLAKE3: one function, fast everywhere", section 2.
 */
export class Blake3Hasher implements BlockHasher {
  readonly blockWords: number;
  readonly #inputWords: number;
  /** The parent's chain value, the block, and zeros up to a whole compress. */
  readonly #input: Int32Array;
  /** Two child values per level of the chunk tree. */
  readonly #children: Int32Array;

  constructor(blockWords: number) {
    this.blockWords = blockWords;
    this.#inputWords = VALUE_WORDS + blockWords;
    this.#input = new Int32Array(Math.ceil(this.#inputWords / COMPRESS_WORDS) * COMPRESS_WORDS);
    const levels = Math.ceil(Math.log2(Math.ceil(this.#inputWords / CHUNK_WORDS)));
    this.#children = new Int32Array(levels * 2 * VALUE_WORDS);
  }

  extend(
    value: ChainValue,
    words: Int32Array,
    firstWord: number,
    blocks: number,
    hashes: Int32Array,
    firstBlock: number,
  ): void {
    const input = this.#input;
    const blockWords = this.blockWords;
    const chunks = Math.ceil(this.#inputWords / CHUNK_WORDS);
    let word = firstWord;
    let at = 2 * firstBlock;
    for (let block = 0; block < blocks; block++) {
      for (let i = 0; i < VALUE_WORDS; i++) input[i] = value[i]!;
      for (let i = 0; i < blockWords; i++) input[VALUE_WORDS + i] = words[word + i]!;
      if (chunks === 1) this.#chunk(value, 0, ROOT);
      else this.#tree(value, 0, chunks, 0, ROOT);
      hashes[at] = value[0]!;
      hashes[at + 1] = value[1]!;
      word += blockWords;
      at += 2;
    }
  }

  /** A left child is the largest complete tree that leaves the right one something. */
  #tree(out: Int32Array, firstChunk: number, chunks: number, level: number, flags: number): void {
    if (chunks === 1) {
      this.#chunk(out, firstChunk, flags);
      return;
    }
    const left = 1 << (31 - Math.clz32(chunks - 1));
    const first = level * 2 * VALUE_WORDS;
    const middle = first + VALUE_WORDS;
    this.#tree(out, firstChunk, left, level + 1, 0);
    for (let i = 0; i < VALUE_WORDS; i++) this.#children[first + i] = out[i]!;
    this.#tree(out, firstChunk + left, chunks - left, level + 1, 0);
    for (let i = 0; i < VALUE_WORDS; i++) this.#children[middle + i] = out[i]!;
    for (let i = 0; i < VALUE_WORDS; i++) out[i] = IV[i]!;
    compress(out, this.#children, first, 0, COMPRESS_WORDS * WORD_BYTES, PARENT | flags);
  }

  #chunk(out: Int32Array, chunk: number, flags: number): void {
    const end = Math.min((chunk + 1) * CHUNK_WORDS, this.#inputWords);
    for (let i = 0; i < VALUE_WORDS; i++) out[i] = IV[i]!;
    let start = CHUNK_START;
    for (let word = chunk * CHUNK_WORDS; word < end; word += COMPRESS_WORDS) {
      const left = end - word;
      if (left > COMPRESS_WORDS) compress(out, this.#input, word, chunk, COMPRESS_WORDS * WORD_BYTES, start);
      else compress(out, this.#input, word, chunk, left * WORD_BYTES, start | CHUNK_END | flags);
      start = 0;
    }
  }
}
