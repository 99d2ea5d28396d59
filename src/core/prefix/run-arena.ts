import { assert } from "../base/assert.ts";

/** Longest run in blocks; a longer chain takes several segments. Bounds what a split copies (32 KiB). */
export const RUN_BLOCKS_MAX = 4_096;

const WORDS_PER_BLOCK = 2;
const SLAB_SHIFT = 14;
const SLAB_WORDS = 1 << SLAB_SHIFT;
const SLAB_MASK = SLAB_WORDS - 1;
/** What a size takes of a slab at once, 4 KiB or a room: a small index has a few of them, and not a slab a size. */
const CHUNK_WORDS = 1024;
const NONE = -1;

/**
 * Memory for runs of block hashes, two words a block, in slabs of 64 KiB. Rooms come in sizes of 1, 2, 3, 4, 6, 8, 12,
 * 16, ... blocks with one free list each, so a run wastes at most half its length, and share slabs by chunks. Handles are
 * word addresses and stay valid while slabs are added.
 */
export class RunArena {
  readonly #slabs: Int32Array[] = [];
  /** First free room per size; the first word of a free room is the next one. */
  readonly #free: number[] = [];
  /** Unused end of the newest chunk of each size, and where that chunk ends. */
  readonly #fresh: number[] = [];
  readonly #freshEnd: number[] = [];
  /** Unused end of the newest slab. */
  #unused = 0;

  get bytes(): number {
    return this.#slabs.length * SLAB_WORDS * Int32Array.BYTES_PER_ELEMENT;
  }

  /** The slab that a handle lies in; its words start at `offset(handle)`. */
  slab(handle: number): Int32Array {
    return this.#slabs[handle >>> SLAB_SHIFT]!;
  }

  offset(handle: number): number {
    return handle & SLAB_MASK;
  }

  allocate(blocks: number): number {
    assert(blocks >= 1 && blocks <= RUN_BLOCKS_MAX, "a run has from 1 to RUN_BLOCKS_MAX blocks");
    const size = sizeOf(blocks);
    const free = this.#free[size] ?? NONE;
    if (free !== NONE) {
      this.#free[size] = this.slab(free)[this.offset(free)]!;
      return free;
    }
    const words = roomOf(size) * WORDS_PER_BLOCK;
    let fresh = this.#fresh[size] ?? NONE;
    if (fresh === NONE) {
      fresh = this.#chunk(words * Math.max(1, Math.floor(CHUNK_WORDS / words)), size);
    }
    this.#fresh[size] = fresh + words === this.#freshEnd[size] ? NONE : fresh + words;
    return fresh;
  }

  /** So many words, which one slab holds, for rooms of a size. */
  #chunk(words: number, size: number): number {
    const slabEnd = this.#slabs.length << SLAB_SHIFT;
    if (this.#unused + words > slabEnd) {
      this.#slabs.push(new Int32Array(SLAB_WORDS));
      this.#unused = slabEnd;
    }
    const chunk = this.#unused;
    this.#unused += words;
    this.#freshEnd[size] = this.#unused;
    return chunk;
  }

  /** Takes a run back, by the room that `roomFor` returned. */
  release(handle: number, roomBlocks: number): void {
    const size = sizeOf(roomBlocks);
    this.slab(handle)[this.offset(handle)] = this.#free[size] ?? NONE;
    this.#free[size] = handle;
  }

  /** Copies blocks [from, from + blocks) of one run to block `at` of another. */
  copy(target: number, at: number, source: number, from: number, blocks: number): void {
    const start = this.offset(source) + from * WORDS_PER_BLOCK;
    const words = blocks * WORDS_PER_BLOCK;
    copyWords(this.slab(target), this.offset(target) + at * WORDS_PER_BLOCK, this.slab(source), start, words);
  }

  /** Writes blocks [from, from + blocks) of `hashes` at block `at` of a run. */
  write(target: number, at: number, hashes: Int32Array, from: number, blocks: number): void {
    const start = this.offset(target) + at * WORDS_PER_BLOCK;
    copyWords(this.slab(target), start, hashes, from * WORDS_PER_BLOCK, blocks * WORDS_PER_BLOCK);
  }

  /**
   * How many of `limit` blocks of a run, from its block `at` on, equal `hashes` from block `block` on, given that the first
   * one does. Chained hashes are equal up to a point and different after it, so a binary search finds the point.
   */
  common(handle: number, at: number, hashes: Int32Array, block: number, limit: number): number {
    const run = this.slab(handle);
    const offset = this.offset(handle) + at * WORDS_PER_BLOCK;
    const first = block * WORDS_PER_BLOCK;
    let equal = 1;
    let different = limit;
    // A run that is in the chain whole is the usual case, so the last block is looked at first.
    let probe = limit - 1;
    while (equal < different) {
      const i = probe * WORDS_PER_BLOCK;
      if (run[offset + i] === hashes[first + i] && run[offset + i + 1] === hashes[first + i + 1]) equal = probe + 1;
      else different = probe;
      probe = (equal + different) >>> 1;
    }
    return equal;
  }

  /** The same for a run that may not be a part of one chain: compares block by block, from the run's block `at` on. */
  equal(handle: number, at: number, hashes: Int32Array, block: number, limit: number): number {
    const run = this.slab(handle);
    const start = this.offset(handle) + at * WORDS_PER_BLOCK;
    const first = block * WORDS_PER_BLOCK;
    const words = limit * WORDS_PER_BLOCK;
    let word = 0;
    while (word < words && run[start + word] === hashes[first + word]) word++;
    return Math.floor(word / WORDS_PER_BLOCK);
  }

  /** Forgets all runs and gives the memory back. */
  reset(): void {
    this.#slabs.length = 0;
    this.#free.length = 0;
    this.#fresh.length = 0;
    this.#unused = 0;
  }
}

/** Blocks that a run allocated for this length has room for. */
export function roomFor(blocks: number): number {
  return roomOf(sizeOf(blocks));
}

/** Sizes 0, 1, 2, 3, 4, ... have room for 1, 2, 3, 4, 6, 8, 12, ... blocks. */
function sizeOf(blocks: number): number {
  if (blocks <= 2) return blocks - 1;
  const octave = 31 - Math.clz32(blocks - 1);
  return 2 * octave + (blocks > 3 << (octave - 1) ? 1 : 0);
}

function roomOf(size: number): number {
  if (size <= 1) return size + 1;
  const octave = size >>> 1;
  return (size & 1) === 0 ? 3 << (octave - 1) : 2 << octave;
}

/** The built-in copy wins from here on. */
const LOOP_WORDS_MAX = 64;

function copyWords(target: Int32Array, at: number, source: Int32Array, from: number, words: number): void {
  if (words > LOOP_WORDS_MAX) {
    target.set(source.subarray(from, from + words), at);
    return;
  }
  for (let i = 0; i < words; i++) target[at + i] = source[from + i]!;
}
