import type { BlockHasher, ChainValue } from "#core/prompt/block-hasher.ts";

const VALUE_WORDS = 8;
const HASH_WORDS_MIN = 64;
const SLAB_WORDS = 8192;
/** A longer prompt gets an array of its own. */
const SLAB_WORDS_SHARED = SLAB_WORDS / 4;
/** Below this a loop is cheaper than a view and a copy. */
const HASH_WORDS_COPIED_AT_ONCE = 128;

/**
 * Block hashes that several states of one conversation share: each state owns the blocks up to its own count, and only the
 * state at the tip may append. Where they outgrow their room they move, for all of these states at once: an array left to
 * the earlier ones would be four fifths of the next, and so on.
 */
class SharedHashes {
  words: Int32Array;
  used: number;

  constructor(words: Int32Array, used: number) {
    this.words = words;
    this.used = used;
  }
}

/** Where a chain stands after some words: its full blocks, the last chain value, and the words of the open block. */
export interface ChainState {
  readonly words: number;
  readonly blocks: number;
  readonly hashes: SharedHashes;
  /** 8 words of chain value, then the open block's words. A plain array: small ones are cheaper than typed ones. */
  readonly carry: readonly number[];
}

/** Where a chain stands before its first word. */
export function rootState(root: ChainValue): ChainState {
  return { words: 0, blocks: 0, hashes: new SharedHashes(new Int32Array(0), 0), carry: Array.from(root) };
}

export interface FinishedChain {
  readonly hashes: Int32Array;
  readonly end: ChainEnd;
}

/** Where the chain of a prompt ended, for what is generated behind it. */
export class ChainEnd {
  readonly #extender: ChainExtender;
  readonly #carry: readonly number[];

  constructor(extender: ChainExtender, carry: readonly number[]) {
    this.#extender = extender;
    this.#carry = carry;
  }

  /** Whether so many tokens fill a block. */
  fills(tokens: number): boolean {
    return this.#carry.length - VALUE_WORDS + tokens >= this.#extender.blockWords;
  }

  /** Two words per full block that the tokens fill behind the prompt's full blocks. */
  hashesBehind(tokens: Int32Array): Int32Array {
    return this.#extender.hashesBehind(this.#carry, tokens);
  }
}

/** Continues chains. States are values: extending one leaves it as it was. */
export class ChainExtender {
  readonly #hasher: BlockHasher;
  readonly #slab = new HashSlab();
  /** Where the chain at hand stands: its value, the words of the open block and how many they are. */
  readonly #value: ChainValue = new Int32Array(VALUE_WORDS);
  readonly #block: Int32Array;
  #open = 0;

  constructor(hasher: BlockHasher) {
    this.#hasher = hasher;
    this.#block = new Int32Array(hasher.blockWords);
  }

  get blockWords(): number {
    return this.#hasher.blockWords;
  }

  /** The state after words[from..to). */
  extend(state: ChainState, words: Int32Array, from: number, to: number): ChainState {
    const open = state.carry.length - VALUE_WORDS;
    const total = open + to - from;
    const blocks = Math.floor(total / this.#hasher.blockWords);
    if (blocks === 0) {
      const carry = state.carry.slice();
      for (let i = from; i < to; i++) carry.push(words[i]!);
      return { words: state.words + to - from, blocks: state.blocks, hashes: state.hashes, carry };
    }
    const hashes = hashesFor(state, blocks);
    this.#start(state.carry);
    this.#feed(words, from, to, hashes.words, state.blocks);
    hashes.used = state.blocks + blocks;
    return { words: state.words + to - from, blocks: state.blocks + blocks, hashes, carry: this.#carry() };
  }

  /** A prompt that ends with `words` and then `tail`, where no later prompt is expected to continue it. */
  finish(state: ChainState, words: Int32Array, tail: Int32Array): FinishedChain {
    const total = state.carry.length - VALUE_WORDS + words.length + tail.length;
    const blocks = Math.floor(total / this.#hasher.blockWords);
    this.#start(state.carry);
    const hashes =
      blocks === 0 ? state.hashes.words.subarray(0, 2 * state.blocks) : this.#slab.take(2 * (state.blocks + blocks));
    if (blocks > 0) copyHashes(state, hashes);
    const block = this.#feed(words, 0, words.length, hashes, state.blocks);
    this.#feed(tail, 0, tail.length, hashes, block);
    return { hashes, end: new ChainEnd(this, this.#carry()) };
  }

  /** The hashes of the full blocks that `words` fill behind where a chain ended. */
  hashesBehind(carry: readonly number[], words: Int32Array): Int32Array {
    const total = carry.length - VALUE_WORDS + words.length;
    const hashes = new Int32Array(2 * Math.floor(total / this.#hasher.blockWords));
    this.#start(carry);
    this.#feed(words, 0, words.length, hashes, 0);
    return hashes;
  }

  #start(carry: readonly number[]): void {
    for (let i = 0; i < VALUE_WORDS; i++) this.#value[i] = carry[i]!;
    this.#open = carry.length - VALUE_WORDS;
    for (let i = 0; i < this.#open; i++) this.#block[i] = carry[VALUE_WORDS + i]!;
  }

  /** Hashes what becomes whole with words[from..to) into `hashes` from `firstBlock` on; returns the block behind it. */
  #feed(words: Int32Array, from: number, to: number, hashes: Int32Array, firstBlock: number): number {
    const filled = this.#block;
    const blockWords = this.#hasher.blockWords;
    let next = from;
    let block = firstBlock;
    let open = this.#open;
    if (open > 0) {
      while (open < blockWords && next < to) filled[open++] = words[next++]!;
      if (open === blockWords) {
        this.#hasher.extend(this.#value, filled, 0, 1, hashes, block++);
        open = 0;
      }
    }
    const whole = Math.floor((to - next) / blockWords);
    if (whole > 0) {
      this.#hasher.extend(this.#value, words, next, whole, hashes, block);
      next += whole * blockWords;
      block += whole;
    }
    while (next < to) filled[open++] = words[next++]!;
    this.#open = open;
    return block;
  }

  #carry(): number[] {
    const carry: number[] = [];
    for (let i = 0; i < VALUE_WORDS; i++) carry.push(this.#value[i]!);
    for (let i = 0; i < this.#open; i++) carry.push(this.#block[i]!);
    return carry;
  }
}

/**
 * Room for the hashes of many prompts in one piece, since an array of its own costs an allocation outside the heap and a
 * share of the garbage collector's work. A piece lives as long as the last prompt in it.
 */
class HashSlab {
  #room = new Int32Array(0);
  #used = 0;

  /** So many words that nobody else will get. */
  take(length: number): Int32Array {
    if (length > SLAB_WORDS_SHARED) return new Int32Array(length);
    if (this.#used + length > this.#room.length) {
      this.#room = new Int32Array(SLAB_WORDS);
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += length;
    return this.#room.subarray(from, this.#used);
  }
}

function copyHashes({ hashes, blocks }: ChainState, to: Int32Array): void {
  const length = 2 * blocks;
  if (length > HASH_WORDS_COPIED_AT_ONCE) to.set(hashes.words.subarray(0, length));
  else for (let i = 0; i < length; i++) to[i] = hashes.words[i]!;
}

/** Room for `blocks` more behind the state's own: with all that share them at the tip, else in a copy. */
function hashesFor(state: ChainState, blocks: number): SharedHashes {
  const { hashes } = state;
  const needed = 2 * (state.blocks + blocks);
  const isTip = state.blocks > 0 && hashes.used === state.blocks;
  if (isTip && needed <= hashes.words.length) return hashes;
  const grown = state.blocks === 0 ? needed : Math.max(HASH_WORDS_MIN, needed + (needed >> 2));
  const words = new Int32Array(grown);
  copyHashes(state, words);
  if (!isTip) return new SharedHashes(words, state.blocks);
  hashes.words = words;
  return hashes;
}
