import { hash } from "node:crypto";
import type { BlockHasher, ChainValue } from "#core/prompt/block-hasher.ts";

/** vLLM's --prefix-caching-hash-algo, those of them that are made here. */
export type VllmHash = "sha256" | "sha256_cbor";

/** What vLLM hashes in place of a seed where PYTHONHASHSEED is not set. */
const NO_SEED = "vllm-none-hash";
const DIGEST_BYTES = 32;
const LAST_WORD = DIGEST_BYTES - 4;
/** Longest head or tail of a block's form, and of a token in it. */
const AROUND_BYTES = 64;
const TOKEN_BYTES = 5;
/** A pickle of more is cut into frames; no engine has such blocks. */
const BLOCK_WORDS_MAX = 8_192;

/**
 * The value before the first block of a prompt, of the model itself and without a salt: the digest of the seed
 * (PYTHONHASHSEED of the engines) in the same form as a block's. vLLM's NONE_HASH.
 */
export function vllmRoot(algorithm: VllmHash, seed: string | undefined): ChainValue {
  const text = Buffer.from(seed ?? NO_SEED);
  if (text.length > 0xff) throw new RangeError(`the seed has ${text.length} bytes; accepted are 255 at most`);
  const form = algorithm === "sha256" ? pickledText(text) : encodedText(text);
  return wordsOf(hash("sha256", form, "buffer"));
}

/**
 * Hashes blocks as vLLM does: SHA-256 over (digest before, tokens, None), as Python pickles it (protocol 5) or as
 * canonical CBOR. The hashes are the digest's last 64 bits, as vLLM's KV events have them; so an event needs no tokens,
 * and a trace's chains have no key. Throws a RangeError unless `blockWords` is an integer in [1, 8192].
 */
export function vllmHasher(algorithm: VllmHash): (blockWords: number) => BlockHasher {
  return (blockWords) => {
    if (!Number.isInteger(blockWords) || blockWords < 1 || blockWords > BLOCK_WORDS_MAX)
      throw new RangeError(`blockWords is ${blockWords}; accepted is an integer from 1 to ${BLOCK_WORDS_MAX}`);
    return new VllmHasher(algorithm, blockWords);
  };
}

class VllmHasher implements BlockHasher {
  readonly blockWords: number;
  readonly #form: Buffer;
  readonly #write: (form: Buffer, digest: Buffer, words: Int32Array, from: number, count: number) => number;
  readonly #digest = Buffer.alloc(DIGEST_BYTES);

  constructor(algorithm: VllmHash, blockWords: number) {
    this.blockWords = blockWords;
    this.#form = Buffer.alloc(AROUND_BYTES + TOKEN_BYTES * blockWords);
    this.#write = algorithm === "sha256" ? pickle : encode;
  }

  extend(
    value: ChainValue,
    words: Int32Array,
    firstWord: number,
    blocks: number,
    hashes: Int32Array,
    firstBlock: number,
  ): void {
    const form = this.#form;
    let digest = this.#digest;
    for (let i = 0; i < value.length; i++) digest.writeInt32BE(value[i]!, LAST_WORD - 4 * i);
    for (let block = 0; block < blocks; block++) {
      const length = this.#write(form, digest, words, firstWord + block * this.blockWords, this.blockWords);
      digest = hash("sha256", form.subarray(0, length), "buffer");
      hashes[2 * (firstBlock + block)] = digest.readInt32BE(LAST_WORD);
      hashes[2 * (firstBlock + block) + 1] = digest.readInt32BE(LAST_WORD - 4);
    }
    for (let i = 0; i < value.length; i++) value[i] = digest.readInt32BE(LAST_WORD - 4 * i);
  }
}

/** Backwards, so that a chain value begins with its block's hash. */
function wordsOf(digest: Buffer): ChainValue {
  return Int32Array.from({ length: DIGEST_BYTES / 4 }, (_, word) => digest.readInt32BE(LAST_WORD - 4 * word));
}

const PROTOCOL = [0x80, 5];
const FRAME = 0x95;
/** Opcode and length; a frame begins behind them. */
const FRAME_BYTES = 9;
const SHORT_BYTES = 0x43;
const SHORT_TEXT = 0x8c;
const MEMOIZE = 0x94;
const MARK = 0x28;
const TUPLE = 0x74;
const TUPLES = [0x29, 0x85, 0x86, 0x87];
const NONE = 0x4e;
const STOP = 0x2e;
const INT_1 = 0x4b;
const INT_2 = 0x4d;
const INT_4 = 0x4a;

function pickledText(text: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from([SHORT_TEXT, text.length]), text, Buffer.from([MEMOIZE, STOP])]);
  return Buffer.concat([framed(body.length), body]);
}

function framed(length: number): Buffer {
  const head = Buffer.alloc(PROTOCOL.length + FRAME_BYTES);
  head.set(PROTOCOL);
  head[PROTOCOL.length] = FRAME;
  head.writeBigUInt64LE(BigInt(length), PROTOCOL.length + 1);
  return head;
}

/** (digest, (token, ...), None); returns its length. Python writes tuples of up to three in a form of their own. */
function pickle(form: Buffer, digest: Buffer, words: Int32Array, from: number, count: number): number {
  const start = PROTOCOL.length + FRAME_BYTES;
  let at = start;
  form[at++] = SHORT_BYTES;
  form[at++] = DIGEST_BYTES;
  at += digest.copy(form, at);
  form[at++] = MEMOIZE;
  const short = TUPLES[count];
  if (short === undefined) form[at++] = MARK;
  for (let i = from; i < from + count; i++) {
    const token = words[i]!;
    if (token >= 0 && token <= 0xff) {
      form[at++] = INT_1;
      form[at++] = token;
    } else if (token >= 0 && token <= 0xffff) {
      form[at++] = INT_2;
      at = form.writeUInt16LE(token, at);
    } else {
      form[at++] = INT_4;
      at = form.writeInt32LE(token, at);
    }
  }
  form[at++] = short ?? TUPLE;
  for (const byte of [MEMOIZE, NONE, TUPLES[3]!, MEMOIZE, STOP]) form[at++] = byte;
  form.set(framed(at - start));
  return at;
}

const CBOR_ARRAY_OF_3 = 0x83;
const CBOR_BYTES_1 = 0x58;
const CBOR_NULL = 0xf6;
/** Major types, in their place. */
const CBOR_NEGATIVE = 0x20;
const CBOR_TEXT = 0x60;
const CBOR_ARRAY = 0x80;

function encodedText(text: Buffer): Buffer {
  const head = Buffer.alloc(TOKEN_BYTES);
  return Buffer.concat([head.subarray(0, encodeNumber(head, 0, CBOR_TEXT, text.length)), text]);
}

function encode(form: Buffer, digest: Buffer, words: Int32Array, from: number, count: number): number {
  let at = 0;
  form[at++] = CBOR_ARRAY_OF_3;
  form[at++] = CBOR_BYTES_1;
  form[at++] = DIGEST_BYTES;
  at += digest.copy(form, at);
  at = encodeNumber(form, at, CBOR_ARRAY, count);
  for (let i = from; i < from + count; i++) {
    const token = words[i]!;
    at = token < 0 ? encodeNumber(form, at, CBOR_NEGATIVE, -1 - token) : encodeNumber(form, at, 0, token);
  }
  form[at++] = CBOR_NULL;
  return at;
}

/** In its shortest form; returns the place behind it. */
function encodeNumber(form: Buffer, at: number, major: number, value: number): number {
  if (value < 24) form[at++] = major | value;
  else if (value <= 0xff) {
    form[at++] = major | 24;
    form[at++] = value;
  } else if (value <= 0xffff) {
    form[at++] = major | 25;
    at = form.writeUInt16BE(value, at);
  } else {
    form[at++] = major | 26;
    at = form.writeUInt32BE(value, at);
  }
  return at;
}
