import type { BlockHasher, ChainValue } from "#core/prompt/block-hash.ts";

const VALUE_WORDS = 8;
const LANES_MIN = 64;

/**
 * Lanes that several states of one conversation share: each state owns the blocks up to its own count, and only the
 * state at the tip may append.
 */
class Lanes {
  readonly words: Int32Array;
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
  readonly lanes: Lanes;
  /** 8 words of chain value, then the open block's words. A plain array: small ones are cheaper than typed ones. */
  readonly carry: readonly number[];
}

export function rootState(root: ChainValue): ChainState {
  return { words: 0, blocks: 0, lanes: new Lanes(new Int32Array(0), 0), carry: Array.from(root) };
}

/** Continues chains. States are values: extending one leaves it as it was. */
export class ChainExtender {
  readonly #hasher: BlockHasher;
  readonly #value: ChainValue = new Int32Array(VALUE_WORDS);
  /** The open block, once it is full. */
  readonly #block: Int32Array;

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
      return { words: state.words + to - from, blocks: state.blocks, lanes: state.lanes, carry };
    }
    const lanes = lanesFor(state, blocks);
    const carry = this.#hash(state, words, from, to, blocks, lanes.words, state.blocks);
    lanes.used = state.blocks + blocks;
    return { words: state.words + to - from, blocks: state.blocks + blocks, lanes, carry };
  }

  /** The lanes of a prompt that ends with `tail`, which no later prompt is expected to continue. */
  finish(state: ChainState, tail: Int32Array): Int32Array {
    const total = state.carry.length - VALUE_WORDS + tail.length;
    const blocks = Math.floor(total / this.#hasher.blockWords);
    if (blocks === 0) return state.lanes.words.subarray(0, 2 * state.blocks);
    const lanes = new Int32Array(2 * (state.blocks + blocks));
    lanes.set(state.lanes.words.subarray(0, 2 * state.blocks));
    this.#hash(state, tail, 0, tail.length, blocks, lanes, state.blocks);
    return lanes;
  }

  #hash(
    state: ChainState,
    words: Int32Array,
    from: number,
    to: number,
    blocks: number,
    lanes: Int32Array,
    firstBlock: number,
  ): number[] {
    const value = this.#value;
    for (let i = 0; i < VALUE_WORDS; i++) value[i] = state.carry[i]!;
    const open = state.carry.length - VALUE_WORDS;
    const blockWords = this.#hasher.blockWords;
    let first = from;
    let left = blocks;
    let block = firstBlock;
    if (open > 0) {
      const filled = this.#block;
      for (let i = 0; i < open; i++) filled[i] = state.carry[VALUE_WORDS + i]!;
      for (let i = open; i < blockWords; i++) filled[i] = words[first++]!;
      this.#hasher.extend(value, filled, 0, 1, lanes, block++);
      left--;
    }
    if (left > 0) this.#hasher.extend(value, words, first, left, lanes, block);
    first += left * blockWords;
    const carry: number[] = [];
    for (let i = 0; i < VALUE_WORDS; i++) carry.push(value[i]!);
    for (let i = first; i < to; i++) carry.push(words[i]!);
    return carry;
  }
}

/** Room for `blocks` more behind the state's own: in place at the tip, else in a copy. */
function lanesFor(state: ChainState, blocks: number): Lanes {
  const { lanes } = state;
  const needed = 2 * (state.blocks + blocks);
  if (lanes.used === state.blocks && needed <= lanes.words.length) return lanes;
  const grown = state.blocks === 0 ? needed : Math.max(LANES_MIN, needed + (needed >> 2));
  const words = new Int32Array(grown);
  words.set(lanes.words.subarray(0, 2 * state.blocks));
  return new Lanes(words, state.blocks);
}
