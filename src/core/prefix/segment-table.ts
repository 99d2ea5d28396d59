import { doubled } from "./doubled.ts";
import { RunArena, roomFor } from "./run-arena.ts";

export const NO_SEGMENT = -1;

/** As HOLDINGS_MIN: an empty table is made in a third of the time. */
const SEGMENTS_MIN = 16;

/**
 * The nodes of the prefix tree, and where to find them. A segment stands for a run of consecutive blocks without a
 * branch; its first hash is its key, and because hashes are chained a key is found without knowing the parent.
 */
export class SegmentTable {
  readonly #runs = new RunArena();
  /** Key: the first hash of the run. */
  #low = new Int32Array(SEGMENTS_MIN);
  #high = new Int32Array(SEGMENTS_MIN);
  #run = new Int32Array(SEGMENTS_MIN);
  /** Blocks that the run has room for. */
  #room = new Int32Array(SEGMENTS_MIN);
  /** Segment before this one, or NO_SEGMENT. For a free segment, the next free one. */
  parent = new Int32Array(SEGMENTS_MIN);
  /** Blocks before this segment. */
  start = new Int32Array(SEGMENTS_MIN);
  /** Blocks of the run. */
  length = new Int32Array(SEGMENTS_MIN);
  /** Number of segments that have this one as their parent. */
  children = new Int32Array(SEGMENTS_MIN);
  /** First holding of the segment, for the owner of the holdings. */
  firstHolding = new Int32Array(SEGMENTS_MIN);
  /** Open addressing, linear probing, at most half full: segment + 1, 0 for none. */
  #buckets = new Int32Array(2 * SEGMENTS_MIN);
  #free = NO_SEGMENT;
  #used = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#runs.bytes + 9 * this.parent.byteLength + this.#buckets.byteLength;
  }

  /** The segment that starts with block `block` of `hashes`, or NO_SEGMENT. */
  find(hashes: Int32Array, block: number): number {
    const low = hashes[2 * block]!;
    const high = hashes[2 * block + 1]!;
    const buckets = this.#buckets;
    const mask = buckets.length - 1;
    for (let i = hashOf(low, high) & mask; ; i = (i + 1) & mask) {
      const segment = buckets[i]! - 1;
      if (segment === NO_SEGMENT || (this.#low[segment] === low && this.#high[segment] === high)) return segment;
    }
  }

  /** How many of the first `limit` blocks of the segment equal `hashes` from block `block` on; the first one does. */
  common(segment: number, hashes: Int32Array, block: number, limit: number): number {
    return this.#runs.common(this.#run[segment]!, hashes, block, limit);
  }

  /** A new segment with a copy of `blocks` blocks of `hashes`. */
  add(parent: number, hashes: Int32Array, block: number, blocks: number): number {
    const run = this.#runs.allocate(blocks);
    this.#runs.write(run, 0, hashes, block, blocks);
    const segment = this.#take();
    if (parent !== NO_SEGMENT) this.children[parent]!++;
    this.parent[segment] = parent;
    this.start[segment] = parent === NO_SEGMENT ? 0 : this.start[parent]! + this.length[parent]!;
    this.children[segment] = 0;
    this.#hold(segment, run, blocks);
    this.#link(segment);
    return segment;
  }

  /** Appends to a run that has no children. */
  extend(segment: number, hashes: Int32Array, block: number, blocks: number): void {
    const before = this.length[segment]!;
    if (before + blocks > this.#room[segment]!) this.#move(segment, before + blocks, before);
    this.#runs.write(this.#run[segment]!, before, hashes, block, blocks);
    this.length[segment] = before + blocks;
  }

  /** Cuts the tail off a run that has no children. */
  truncate(segment: number, blocks: number): void {
    this.length[segment] = blocks;
    // Not at every block, so that a tail which goes bit by bit is not copied each time.
    if (this.#room[segment]! >= 2 * roomFor(blocks)) this.#move(segment, blocks, blocks);
  }

  /** Cuts a segment in two. It keeps its tail and its children; the new segment that is returned becomes its parent. */
  split(segment: number, blocks: number): number {
    const runs = this.#runs;
    const whole = this.#run[segment]!;
    const tailBlocks = this.length[segment]! - blocks;
    const head = runs.allocate(blocks);
    runs.copy(head, 0, whole, 0, blocks);
    const tail = runs.allocate(tailBlocks);
    runs.copy(tail, 0, whole, blocks, tailBlocks);
    runs.release(whole, this.#room[segment]!);
    this.#unlink(segment);

    const parent = this.#take();
    this.parent[parent] = this.parent[segment]!;
    this.start[parent] = this.start[segment]!;
    this.children[parent] = 1;
    this.#hold(parent, head, blocks);
    this.parent[segment] = parent;
    this.start[segment]! += blocks;
    this.#hold(segment, tail, tailBlocks);
    this.#link(parent);
    this.#link(segment);
    return parent;
  }

  /** Frees a segment that has no children. */
  remove(segment: number): void {
    const parent = this.parent[segment]!;
    if (parent !== NO_SEGMENT) this.children[parent]!--;
    this.#unlink(segment);
    this.#runs.release(this.#run[segment]!, this.#room[segment]!);
    this.parent[segment] = this.#free;
    this.#free = segment;
    this.#count--;
    if (this.#count === 0) this.#runs.reset();
  }

  #take(): number {
    this.#count++;
    const free = this.#free;
    if (free !== NO_SEGMENT) {
      this.#free = this.parent[free]!;
      return free;
    }
    if (this.#used === this.parent.length) this.#grow();
    return this.#used++;
  }

  #hold(segment: number, run: number, blocks: number): void {
    this.#run[segment] = run;
    this.#room[segment] = roomFor(blocks);
    this.length[segment] = blocks;
    const slab = this.#runs.slab(run);
    const offset = this.#runs.offset(run);
    this.#low[segment] = slab[offset]!;
    this.#high[segment] = slab[offset + 1]!;
  }

  /** Gives the run another room, keeping its first `kept` blocks. */
  #move(segment: number, blocks: number, kept: number): void {
    const before = this.#run[segment]!;
    const run = this.#runs.allocate(blocks);
    this.#runs.copy(run, 0, before, 0, kept);
    this.#runs.release(before, this.#room[segment]!);
    this.#run[segment] = run;
    this.#room[segment] = roomFor(blocks);
  }

  #link(segment: number): void {
    const buckets = this.#buckets;
    const mask = buckets.length - 1;
    let i = hashOf(this.#low[segment]!, this.#high[segment]!) & mask;
    while (buckets[i] !== 0) i = (i + 1) & mask;
    buckets[i] = segment + 1;
  }

  /** Closes the gap by moving later entries of the cluster forward, so that no tombstone is needed. */
  #unlink(segment: number): void {
    const buckets = this.#buckets;
    const mask = buckets.length - 1;
    let gap = hashOf(this.#low[segment]!, this.#high[segment]!) & mask;
    while (buckets[gap] !== segment + 1) gap = (gap + 1) & mask;
    for (let i = (gap + 1) & mask; buckets[i] !== 0; i = (i + 1) & mask) {
      const other = buckets[i]! - 1;
      const home = hashOf(this.#low[other]!, this.#high[other]!) & mask;
      if (((i - home) & mask) < ((i - gap) & mask)) continue;
      buckets[gap] = other + 1;
      gap = i;
    }
    buckets[gap] = 0;
  }

  #grow(): void {
    this.#low = doubled(this.#low);
    this.#high = doubled(this.#high);
    this.#run = doubled(this.#run);
    this.#room = doubled(this.#room);
    this.parent = doubled(this.parent);
    this.start = doubled(this.start);
    this.length = doubled(this.length);
    this.children = doubled(this.children);
    this.firstHolding = doubled(this.firstHolding);
    // Called only when every segment is in use, so all of them are linked but the one being taken.
    const before = this.#buckets;
    this.#buckets = new Int32Array(2 * before.length);
    for (const bucket of before) if (bucket !== 0) this.#link(bucket - 1);
  }
}

/** Bucket before masking. They are hashes already, but a trace may bring small numbers. */
function hashOf(low: number, high: number): number {
  const mixed = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
