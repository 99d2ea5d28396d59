import { doubled } from "./doubled.ts";
import { RunArena, RUN_BLOCKS_MAX, roomFor } from "./run-arena.ts";

export const NO_RUN = -1;
/** What `find` returns for a block that no run has. */
export const NOWHERE = -1;

const RUNS_MIN = 64;
const BUCKETS_MIN = 256;
const BUCKET_WORDS = 3;
const COORDINATE = 1;
const LOW = 2;
/** Buckets per block, at least. */
const SPARSENESS = 1.5;

/**
 * Runs of consecutive blocks in which every block can be found by its hash. A run neither knows nor needs its parent:
 * a hash stands for everything before it, so whatever precedes a block in a run precedes it everywhere. Of a run that is
 * relied on only as far as some chain has shown it: where the blocks are in another order, a comparison is only slow.
 */
export class BlockRuns {
  readonly #arena = new RunArena();
  #run = new Int32Array(RUNS_MIN);
  #room = new Int32Array(RUNS_MIN);
  /** Coordinate of the first block; cutting a run's head off moves it, so that the other blocks keep theirs. */
  #origin = new Int32Array(RUNS_MIN);
  /** How many of its first blocks follow each other in a chain, as far as is known. */
  #chained = new Int32Array(RUNS_MIN);
  /** Blocks of the run. For a free one, the next free one. */
  length = new Int32Array(RUNS_MIN);
  /** First holding of the run, for the owner of the holdings. */
  firstHolding = new Int32Array(RUNS_MIN);
  #free = NO_RUN;
  #used = 0;
  #count = 0;
  /**
   * Open addressing, linear probing. Three words a bucket, so that a probe reads one place in memory: run + 1, 0 for
   * none; the block's coordinate; the low word of its hash.
   */
  #buckets = new Int32Array(BUCKET_WORDS * BUCKETS_MIN);
  #mask = BUCKETS_MIN - 1;
  #blocks = 0;

  get count(): number {
    return this.#count;
  }

  /** Blocks in all runs. */
  get blocks(): number {
    return this.#blocks;
  }

  get bytes(): number {
    return this.#arena.bytes + 6 * this.length.byteLength + this.#buckets.byteLength;
  }

  /** Makes room in the table for so many blocks, so that it need not grow later. */
  reserve(blocks: number): void {
    let buckets = this.#mask + 1;
    while (buckets < SPARSENESS * blocks) buckets *= 2;
    if (buckets > this.#mask + 1) this.#rehash(buckets);
  }

  /** Where block `block` of `hashes` is, for `runAt` and `positionAt`; NOWHERE if it is in no run. */
  find(hashes: Int32Array, block: number): number {
    const low = hashes[2 * block]!;
    const high = hashes[2 * block + 1]!;
    const buckets = this.#buckets;
    for (let i = homeOf(low) & this.#mask; ; i = (i + 1) & this.#mask) {
      const place = BUCKET_WORDS * i;
      if (buckets[place] === 0) return NOWHERE;
      if (buckets[place + LOW] === low && this.#highAt(place) === high) return place;
    }
  }

  runAt(place: number): number {
    return this.#buckets[place]! - 1;
  }

  positionAt(place: number): number {
    return (this.#buckets[place + COORDINATE]! - this.#origin[this.#buckets[place]! - 1]!) | 0;
  }

  /**
   * How many blocks of the run, from `position` on, equal the ones of a chain's `hashes` from block `block` on, up to
   * `limit`, given that the first one does.
   */
  common(run: number, position: number, hashes: Int32Array, block: number, limit: number): number {
    const arena = this.#arena;
    const handle = this.#run[run]!;
    const chained = this.#chained[run]!;
    const known = Math.min(limit, chained - position);
    let equal = known > 1 ? arena.common(handle, position, hashes, block, known) : 1;
    if (equal < known || equal === limit) return equal;
    equal += arena.equal(handle, position + equal, hashes, block + equal, limit - equal);
    if (position === 0 || position < chained) this.#chained[run] = Math.max(chained, position + equal);
    return equal;
  }

  /** A new run of one block. */
  add(hashes: Int32Array, block: number): number {
    const run = this.#take();
    this.#run[run] = this.#arena.allocate(1);
    this.#room[run] = roomFor(1);
    this.#append(run, hashes, block);
    return run;
  }

  /** Appends one block, unless the run is as long as it may be. */
  extend(run: number, hashes: Int32Array, block: number): boolean {
    const length = this.length[run]!;
    if (length === RUN_BLOCKS_MAX) return false;
    if (length === this.#room[run]) this.#move(run, length + 1);
    this.#append(run, hashes, block);
    return true;
  }

  /** Cuts the tail off, down to `blocks` blocks; a run of none is freed. */
  truncate(run: number, blocks: number): void {
    for (let position = blocks; position < this.length[run]!; position++) this.#unlink(run, position);
    this.#blocks -= this.length[run]! - blocks;
    this.length[run] = blocks;
    this.#chained[run] = Math.min(this.#chained[run]!, blocks);
    if (blocks === 0) this.#release(run);
    else if (this.#room[run]! >= 2 * roomFor(blocks)) this.#move(run, blocks);
  }

  /** Cuts a run in two. It keeps its tail; returns the new run, which has its first `blocks` blocks. */
  split(run: number, blocks: number): number {
    const arena = this.#arena;
    const whole = this.#run[run]!;
    const head = this.#take();
    const kept = arena.allocate(blocks);
    arena.copy(kept, 0, whole, 0, blocks);
    this.#run[head] = kept;
    this.#room[head] = roomFor(blocks);
    this.length[head] = blocks;
    this.#chained[head] = Math.min(this.#chained[run]!, blocks);
    for (let position = 0; position < blocks; position++) this.#rehouse(run, position, head, position);
    const tailBlocks = this.length[run]! - blocks;
    const tail = arena.allocate(tailBlocks);
    arena.copy(tail, 0, whole, blocks, tailBlocks);
    arena.release(whole, this.#room[run]!);
    this.#run[run] = tail;
    this.#room[run] = roomFor(tailBlocks);
    this.#origin[run]! += blocks;
    this.length[run] = tailBlocks;
    this.#chained[run] = Math.max(0, this.#chained[run]! - blocks);
    return head;
  }

  /**
   * Moves all blocks of `next` to the end of `run`, and frees it. A chain has shown that they are its own, one after the
   * other. Both together must not be longer than a run may be.
   */
  merge(run: number, next: number): void {
    const before = this.length[run]!;
    const added = this.length[next]!;
    if (before + added > this.#room[run]!) this.#move(run, before + added);
    this.#arena.copy(this.#run[run]!, before, this.#run[next]!, 0, added);
    for (let position = 0; position < added; position++) this.#rehouse(next, position, run, before + position);
    this.length[run] = before + added;
    this.#chained[run] = before + added;
    this.#release(next);
  }

  #append(run: number, hashes: Int32Array, block: number): void {
    const position = this.length[run]!;
    this.#arena.write(this.#run[run]!, position, hashes, block, 1);
    this.length[run] = position + 1;
    this.#blocks++;
    if (SPARSENESS * this.#blocks > this.#mask + 1) this.#rehash(2 * (this.#mask + 1));
    this.#link(run, position);
  }

  #take(): number {
    this.#count++;
    let run = this.#free;
    if (run === NO_RUN) {
      if (this.#used === this.length.length) this.#grow();
      run = this.#used++;
    } else {
      this.#free = this.length[run]!;
    }
    this.length[run] = 0;
    this.#chained[run] = 0;
    this.#origin[run] = 0;
    return run;
  }

  #release(run: number): void {
    this.#arena.release(this.#run[run]!, this.#room[run]!);
    this.#room[run] = 0;
    this.length[run] = this.#free;
    this.#free = run;
    this.#count--;
    if (this.#count === 0) this.#arena.reset();
  }

  #move(run: number, blocks: number): void {
    const before = this.#run[run]!;
    const after = this.#arena.allocate(blocks);
    this.#arena.copy(after, 0, before, 0, Math.min(blocks, this.length[run]!));
    this.#arena.release(before, this.#room[run]!);
    this.#run[run] = after;
    this.#room[run] = roomFor(blocks);
  }

  #highAt(place: number): number {
    const handle = this.#run[this.runAt(place)]!;
    return this.#arena.slab(handle)[this.#arena.offset(handle) + 2 * this.positionAt(place) + 1]!;
  }

  #lowOf(run: number, position: number): number {
    const handle = this.#run[run]!;
    return this.#arena.slab(handle)[this.#arena.offset(handle) + 2 * position]!;
  }

  #link(run: number, position: number): void {
    this.#put(run + 1, (this.#origin[run]! + position) | 0, this.#lowOf(run, position));
  }

  #put(word: number, coordinate: number, low: number): void {
    const buckets = this.#buckets;
    let i = homeOf(low) & this.#mask;
    while (buckets[BUCKET_WORDS * i] !== 0) i = (i + 1) & this.#mask;
    buckets[BUCKET_WORDS * i] = word;
    buckets[BUCKET_WORDS * i + COORDINATE] = coordinate;
    buckets[BUCKET_WORDS * i + LOW] = low;
  }

  #bucketOf(run: number, position: number): number {
    const buckets = this.#buckets;
    const coordinate = (this.#origin[run]! + position) | 0;
    let i = homeOf(this.#lowOf(run, position)) & this.#mask;
    while (buckets[BUCKET_WORDS * i] !== run + 1 || buckets[BUCKET_WORDS * i + COORDINATE] !== coordinate) {
      i = (i + 1) & this.#mask;
    }
    return i;
  }

  /** The block is found at another place from now on. */
  #rehouse(run: number, position: number, newRun: number, newPosition: number): void {
    const place = BUCKET_WORDS * this.#bucketOf(run, position);
    this.#buckets[place] = newRun + 1;
    this.#buckets[place + COORDINATE] = (this.#origin[newRun]! + newPosition) | 0;
  }

  /** Closes the gap by moving later entries of the cluster forward, so that no tombstone is needed. */
  #unlink(run: number, position: number): void {
    const buckets = this.#buckets;
    const mask = this.#mask;
    let gap = this.#bucketOf(run, position);
    for (let i = (gap + 1) & mask; buckets[BUCKET_WORDS * i] !== 0; i = (i + 1) & mask) {
      const home = homeOf(buckets[BUCKET_WORDS * i + LOW]!) & mask;
      if (((i - home) & mask) < ((i - gap) & mask)) continue;
      for (let word = 0; word < BUCKET_WORDS; word++)
        buckets[BUCKET_WORDS * gap + word] = buckets[BUCKET_WORDS * i + word]!;
      gap = i;
    }
    buckets[BUCKET_WORDS * gap] = 0;
  }

  #rehash(count: number): void {
    const before = this.#buckets;
    this.#buckets = new Int32Array(BUCKET_WORDS * count);
    this.#mask = count - 1;
    for (let place = 0; place < before.length; place += BUCKET_WORDS) {
      if (before[place] !== 0) this.#put(before[place]!, before[place + COORDINATE]!, before[place + LOW]!);
    }
  }

  #grow(): void {
    this.#run = doubled(this.#run);
    this.#room = doubled(this.#room);
    this.#origin = doubled(this.#origin);
    this.#chained = doubled(this.#chained);
    this.length = doubled(this.length);
    this.firstHolding = doubled(this.firstHolding);
  }
}

/** Bucket before masking. The low word is a hash already, but a trace may bring small numbers. */
function homeOf(low: number): number {
  const mixed = Math.imul(low, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
