import { doubled } from "./doubled.ts";
import { keyHash } from "./key-hash.ts";
import { RunArena, RUN_BLOCKS_MAX, roomFor } from "./run-arena.ts";

export const NO_RUN = -1;
/** What `find` returns for a block that no run has. */
export const NOWHERE = -1;

const RUNS_MIN = 64;
const BUCKETS_MIN = 256;

/**
 * Runs of consecutive blocks in which every block can be found by its hash. A run neither knows nor needs its parent:
 * a hash stands for everything before it, so whatever precedes a block in a run precedes it everywhere. Nothing here
 * relies on that: a run whose blocks are in another order is only slow.
 */
export class BlockRuns {
  readonly #arena = new RunArena();
  #run = new Int32Array(RUNS_MIN);
  #room = new Int32Array(RUNS_MIN);
  /** Coordinate of the first block; cutting a run's head off moves it, so that the other blocks keep theirs. */
  #origin = new Int32Array(RUNS_MIN);
  /** Blocks of the run. For a free one, the next free one. */
  length = new Int32Array(RUNS_MIN);
  /** First holding of the run, for the owner of the holdings. */
  firstHolding = new Int32Array(RUNS_MIN);
  #free = NO_RUN;
  #used = 0;
  #count = 0;
  /** Open addressing, linear probing, at most half full: run + 1, 0 for none, and the block's coordinate. */
  #bucketRun = new Int32Array(BUCKETS_MIN);
  #bucketCoordinate = new Int32Array(BUCKETS_MIN);
  #blocks = 0;

  get count(): number {
    return this.#count;
  }

  /** Blocks in all runs. */
  get blocks(): number {
    return this.#blocks;
  }

  get bytes(): number {
    return this.#arena.bytes + 5 * this.length.byteLength + 2 * this.#bucketRun.byteLength;
  }

  /** Makes room in the table for so many blocks, so that it need not grow later. */
  reserve(blocks: number): void {
    let buckets = this.#bucketRun.length;
    while (buckets < 2 * blocks) buckets *= 2;
    if (buckets > this.#bucketRun.length) this.#rehash(buckets);
  }

  /** Where block `block` of `lanes` is, for `runAt` and `positionAt`; NOWHERE if it is in no run. */
  find(lanes: Int32Array, block: number): number {
    const low = lanes[2 * block]!;
    const high = lanes[2 * block + 1]!;
    const mask = this.#bucketRun.length - 1;
    for (let bucket = keyHash(low, high) & mask; ; bucket = (bucket + 1) & mask) {
      const run = this.#bucketRun[bucket]! - 1;
      if (run === NO_RUN) return NOWHERE;
      const handle = this.#run[run]!;
      const slab = this.#arena.slab(handle);
      const word = this.#arena.offset(handle) + 2 * this.positionAt(bucket);
      if (slab[word] === low && slab[word + 1] === high) return bucket;
    }
  }

  runAt(place: number): number {
    return this.#bucketRun[place]! - 1;
  }

  positionAt(place: number): number {
    return (this.#bucketCoordinate[place]! - this.#origin[this.#bucketRun[place]! - 1]!) | 0;
  }

  /** How many blocks of the run, from `position` on, equal the ones of `lanes` from block `block` on, up to `limit`. */
  common(run: number, position: number, lanes: Int32Array, block: number, limit: number): number {
    return this.#arena.equal(this.#run[run]!, position, lanes, block, limit);
  }

  /** A new run of one block. */
  add(lanes: Int32Array, block: number): number {
    const run = this.#take();
    this.#run[run] = this.#arena.allocate(1);
    this.#room[run] = roomFor(1);
    this.#append(run, lanes, block);
    return run;
  }

  /** Appends one block, unless the run is as long as it may be. */
  extend(run: number, lanes: Int32Array, block: number): boolean {
    const length = this.length[run]!;
    if (length === RUN_BLOCKS_MAX) return false;
    if (length === this.#room[run]) this.#move(run, length + 1);
    this.#append(run, lanes, block);
    return true;
  }

  /** Cuts the tail off, down to `blocks` blocks; a run of none is freed. */
  truncate(run: number, blocks: number): void {
    for (let position = blocks; position < this.length[run]!; position++) this.#unlink(run, position);
    this.#blocks -= this.length[run]! - blocks;
    this.length[run] = blocks;
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
    for (let position = 0; position < blocks; position++) this.#rehouse(run, position, head, position);
    const tailBlocks = this.length[run]! - blocks;
    const tail = arena.allocate(tailBlocks);
    arena.copy(tail, 0, whole, blocks, tailBlocks);
    arena.release(whole, this.#room[run]!);
    this.#run[run] = tail;
    this.#room[run] = roomFor(tailBlocks);
    this.#origin[run]! += blocks;
    this.length[run] = tailBlocks;
    return head;
  }

  /** Moves all blocks of `next` to the end of `run`, and frees it. Both together must not be longer than a run may be. */
  merge(run: number, next: number): void {
    const before = this.length[run]!;
    const added = this.length[next]!;
    if (before + added > this.#room[run]!) this.#move(run, before + added);
    this.#arena.copy(this.#run[run]!, before, this.#run[next]!, 0, added);
    for (let position = 0; position < added; position++) this.#rehouse(next, position, run, before + position);
    this.length[run] = before + added;
    this.#release(next);
  }

  #append(run: number, lanes: Int32Array, block: number): void {
    const position = this.length[run]!;
    this.#arena.write(this.#run[run]!, position, lanes, block, 1);
    this.length[run] = position + 1;
    this.#blocks++;
    if (2 * this.#blocks > this.#bucketRun.length) this.#rehash(2 * this.#bucketRun.length);
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

  #hashAt(run: number, position: number): number {
    const handle = this.#run[run]!;
    const slab = this.#arena.slab(handle);
    const word = this.#arena.offset(handle) + 2 * position;
    return keyHash(slab[word]!, slab[word + 1]!);
  }

  #link(run: number, position: number): void {
    const mask = this.#bucketRun.length - 1;
    let bucket = this.#hashAt(run, position) & mask;
    while (this.#bucketRun[bucket] !== 0) bucket = (bucket + 1) & mask;
    this.#bucketRun[bucket] = run + 1;
    this.#bucketCoordinate[bucket] = (this.#origin[run]! + position) | 0;
  }

  #bucketOf(run: number, position: number): number {
    const mask = this.#bucketRun.length - 1;
    const coordinate = (this.#origin[run]! + position) | 0;
    let bucket = this.#hashAt(run, position) & mask;
    while (this.#bucketRun[bucket] !== run + 1 || this.#bucketCoordinate[bucket] !== coordinate) {
      bucket = (bucket + 1) & mask;
    }
    return bucket;
  }

  /** The block is found at another place from now on. */
  #rehouse(run: number, position: number, newRun: number, newPosition: number): void {
    const bucket = this.#bucketOf(run, position);
    this.#bucketRun[bucket] = newRun + 1;
    this.#bucketCoordinate[bucket] = (this.#origin[newRun]! + newPosition) | 0;
  }

  /** Closes the gap by moving later entries of the cluster forward, so that no tombstone is needed. */
  #unlink(run: number, position: number): void {
    const mask = this.#bucketRun.length - 1;
    let gap = this.#bucketOf(run, position);
    for (let bucket = (gap + 1) & mask; this.#bucketRun[bucket] !== 0; bucket = (bucket + 1) & mask) {
      const home = this.#hashAt(this.runAt(bucket), this.positionAt(bucket)) & mask;
      if (((bucket - home) & mask) < ((bucket - gap) & mask)) continue;
      this.#bucketRun[gap] = this.#bucketRun[bucket]!;
      this.#bucketCoordinate[gap] = this.#bucketCoordinate[bucket]!;
      gap = bucket;
    }
    this.#bucketRun[gap] = 0;
  }

  #rehash(buckets: number): void {
    const runs = this.#bucketRun;
    const coordinates = this.#bucketCoordinate;
    this.#bucketRun = new Int32Array(buckets);
    this.#bucketCoordinate = new Int32Array(buckets);
    for (let bucket = 0; bucket < runs.length; bucket++) {
      const run = runs[bucket]! - 1;
      if (run !== NO_RUN) this.#link(run, (coordinates[bucket]! - this.#origin[run]!) | 0);
    }
  }

  #grow(): void {
    this.#run = doubled(this.#run);
    this.#room = doubled(this.#room);
    this.#origin = doubled(this.#origin);
    this.length = doubled(this.length);
    this.firstHolding = doubled(this.firstHolding);
  }
}
