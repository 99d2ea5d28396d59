import { assert } from "../assert.ts";

/** Longest run in blocks; a longer chain takes several segments. Bounds what a split copies (32 KiB). */
export const RUN_BLOCKS_MAX = 4_096;

const WORDS_PER_BLOCK = 2;
const SLAB_SHIFT = 14;
const SLAB_WORDS = 1 << SLAB_SHIFT;
const SLAB_MASK = SLAB_WORDS - 1;
const ROOM_MIN_BLOCKS = 4;
const NONE = -1;

/**
 * Memory for runs of block hashes, two words a block, in slabs of 64 KiB. Rooms come in sizes of 4, 6, 8, 12, 16, ...
 * blocks with one free list each, so a run wastes at most half its length. Handles are word addresses and stay valid
 * while slabs are added.
 */
export class RunArena {
  readonly #slabs: Int32Array[] = [];
  /** First free room per size; the first word of a free room is the next one. */
  readonly #free: number[] = [];
  /** Unused end of the newest slab of each size. */
  readonly #fresh: number[] = [];

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
    if (fresh === NONE || this.offset(fresh) + words > SLAB_WORDS) {
      fresh = this.#slabs.length << SLAB_SHIFT;
      this.#slabs.push(new Int32Array(SLAB_WORDS));
    }
    // A slab that is full to the last word must not spill into the next one.
    this.#fresh[size] = this.offset(fresh) + words === SLAB_WORDS ? NONE : fresh + words;
    return fresh;
  }

  /** Takes a run back, by the room that `roomFor` told. */
  release(handle: number, roomBlocks: number): void {
    const size = sizeOf(roomBlocks);
    this.slab(handle)[this.offset(handle)] = this.#free[size] ?? NONE;
    this.#free[size] = handle;
  }

  /** Copies `blocks` blocks from one run's block `from` to the start of another. */
  copy(target: number, source: number, from: number, blocks: number): void {
    const start = this.offset(source) + from * WORDS_PER_BLOCK;
    copyWords(this.slab(target), this.offset(target), this.slab(source), start, blocks * WORDS_PER_BLOCK);
  }

  /** Writes `blocks` blocks of `lanes`, from block `from` on, at block `at` of a run. */
  write(target: number, at: number, lanes: Int32Array, from: number, blocks: number): void {
    const start = this.offset(target) + at * WORDS_PER_BLOCK;
    copyWords(this.slab(target), start, lanes, from * WORDS_PER_BLOCK, blocks * WORDS_PER_BLOCK);
  }

  /** Forgets all runs and gives the memory back. */
  reset(): void {
    this.#slabs.length = 0;
    this.#free.length = 0;
    this.#fresh.length = 0;
  }
}

/** Blocks that a run allocated for this length has room for. */
export function roomFor(blocks: number): number {
  return roomOf(sizeOf(blocks));
}

/** Sizes 0, 1, 2, 3, ... have room for 4, 6, 8, 12, ... blocks. */
function sizeOf(blocks: number): number {
  if (blocks <= ROOM_MIN_BLOCKS) return 0;
  const octave = 31 - Math.clz32(blocks - 1);
  return 2 * (octave - 2) + (blocks > 3 << (octave - 1) ? 2 : 1);
}

function roomOf(size: number): number {
  const octave = 2 + (size >>> 1);
  return (size & 1) === 0 ? 1 << octave : 3 << (octave - 1);
}

function copyWords(target: Int32Array, at: number, source: Int32Array, from: number, words: number): void {
  for (let i = 0; i < words; i++) target[at + i] = source[from + i]!;
}
