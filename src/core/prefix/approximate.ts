import { assert } from "../base/assert.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { BlockChain } from "../prompt/block-chain.ts";
import { HoldingPool, NO_HOLDING } from "./holding-pool.ts";
import type { Insertion, PrefixIndex } from "./prefix-index.ts";
import { roomFor, RUN_BLOCKS_MAX, RunArena } from "./run-arena.ts";
import { doubled } from "./doubled.ts";

/** What an approximate index needs to take an insertion back. */
class Receipt implements Insertion {
  readonly slot: number;
  /** Number of the insertion. */
  readonly stamp: number;
  /** The chain's deepest holding when it was inserted. */
  readonly deepest: number;
  /** Leading blocks that the endpoint held before. */
  readonly held: number;

  constructor(slot: number, stamp: number, deepest: number, held: number) {
    this.slot = slot;
    this.stamp = stamp;
    this.deepest = deepest;
    this.held = held;
  }
}

/** Endpoints that an index takes: a segment's holders are searched in line. */
const SLOTS_MAX = 4_096;

/**
 * Guesses what each engine's prefix cache holds from what was sent there: per endpoint, strictly the least recently used
 * block goes first. An insertion touches all blocks of its chain at one instant, and among blocks of one instant the
 * deepest goes first, so a held block's ancestors are held too.
 *
 * The blocks form one radix tree for all endpoints. A segment of it is a run of hashes without a branch, found through
 * the hash of its first block; where a chain leaves a run is found by bisection. What an endpoint holds is a leading
 * part of a run, one holding per segment and endpoint, all of it touched at the same instant: a chain that ends or
 * branches inside a run splits it. So one insertion costs a step per segment on its path, not per block, and a lookup
 * answers for all endpoints at once.
 *
 * Keys are 64 bits. Among n blocks held, a chain that was never seen finds a wrong match with probability below
 * n / 2^64 per lookup of a segment (n = 10^7: 6e-13), and all that comes of it is a misrouted request.
 */
export class ApproximateIndex implements PrefixIndex {
  readonly #segments = new SegmentTable();
  readonly #holdings = new HoldingPool(this.#segments);
  /** Per slot; undefined when the slot is free. */
  readonly #endpoints: (EndpointId | undefined)[] = [];
  readonly #capacities: number[] = [];
  readonly #sizes: number[] = [];
  #stamp = 0;
  /** The segments that the last walk matched, from the root on: the first `#pathLength`, so that its room is kept. */
  readonly #path: number[] = [];
  #pathLength = 0;
  /** Blocks of the last of them that matched. */
  #lastBlocks = 0;

  /** Memory of the index, including room that is free. */
  get bytes(): number {
    return this.#segments.bytes + this.#holdings.bytes;
  }

  get segments(): number {
    return this.#segments.count;
  }

  get holdings(): number {
    return this.#holdings.count;
  }

  join(endpoint: EndpointId, capacityBlocks: number): number {
    assert(!this.#endpoints.includes(endpoint), "an endpoint joins once");
    assertCapacity(capacityBlocks);
    const freed = this.#endpoints.indexOf(undefined);
    const slot = freed === -1 ? this.#endpoints.length : freed;
    assert(slot < SLOTS_MAX, "no more than SLOTS_MAX endpoints");
    this.#endpoints[slot] = endpoint;
    this.#capacities[slot] = capacityBlocks;
    this.#sizes[slot] = 0;
    this.#holdings.addSlot(slot);
    return slot;
  }

  leave(slot: number): void {
    this.clear(slot);
    this.#endpoints[slot] = undefined;
  }

  resize(slot: number, capacityBlocks: number): void {
    assertCapacity(capacityBlocks);
    this.#assertTaken(slot);
    this.#capacities[slot] = capacityBlocks;
    this.#evict(slot);
  }

  clear(slot: number): void {
    this.#assertTaken(slot);
    for (let oldest = this.#holdings.oldest(slot); oldest !== NO_HOLDING; oldest = this.#holdings.oldest(slot)) {
      this.#trim(oldest, this.#holdings.blocks[oldest]!);
    }
  }

  size(slot: number): number {
    this.#assertTaken(slot);
    return this.#sizes[slot]!;
  }

  match(chain: BlockChain, hits: Int32Array): void {
    hits.fill(0);
    this.#walk(chain, chain.length);
    const { firstHolding, start, length } = this.#segments;
    const { slot, blocks, next } = this.#holdings;
    for (let i = 0; i < this.#pathLength; i++) {
      const segment = this.#path[i]!;
      const before = start[segment]!;
      const matched = i === this.#pathLength - 1 ? this.#lastBlocks : length[segment]!;
      for (let h = firstHolding[segment]!; h !== NO_HOLDING; h = next[h]!) {
        hits[slot[h]!] = before + Math.min(blocks[h]!, matched);
      }
    }
  }

  insert(slot: number, chain: BlockChain): Insertion {
    this.#assertTaken(slot);
    const stamp = ++this.#stamp;
    const wanted = Math.min(chain.length, this.#capacities[slot]!);
    const reached = this.#walk(chain, wanted);
    let holding = this.#deepestOnPath(slot);
    const held = this.#heldOnPath(holding);
    if (reached > 0) holding = this.#splitWhereLeft(holding, reached < wanted);
    holding = this.#holdPath(slot, holding, stamp);
    if (reached < wanted) holding = this.#append(slot, chain, reached, wanted, holding, stamp);
    const end = this.#endOf(holding);
    for (let h = holding; h !== NO_HOLDING; h = this.#holdings.parent[h]!) this.#holdings.touch(h, stamp);
    this.#sizes[slot]! += end - held;
    this.#evict(slot);
    return new Receipt(slot, stamp, holding, held);
  }

  withdraw(insertion: Insertion): void {
    assert(insertion instanceof Receipt, "an insertion is withdrawn where it was made");
    const { slot, stamp, deepest, held } = insertion;
    if (this.#endpoints[slot] === undefined) return;
    const { parent, stamp: stamps } = this.#holdings;
    // Eviction goes by age, so once it has reached this insertion, the rest of it is what is oldest.
    const oldest = this.#holdings.oldest(slot);
    let holding = oldest !== NO_HOLDING && stamps[oldest] === stamp ? oldest : deepest;
    while (holding !== NO_HOLDING && stamps[holding] === stamp) {
      const added = this.#endOf(holding) - held;
      if (added <= 0) return;
      const above = parent[holding]!;
      this.#trim(holding, Math.min(added, this.#holdings.blocks[holding]!));
      holding = above;
    }
  }

  /** Forgets what the endpoint holds that was last touched by this insertion or an earlier one. */
  expire(insertion: Insertion): void {
    assert(insertion instanceof Receipt, "an insertion expires where it was made");
    const { slot, stamp } = insertion;
    if (this.#endpoints[slot] === undefined) return;
    for (let oldest = this.#holdings.oldest(slot); oldest !== NO_HOLDING; oldest = this.#holdings.oldest(slot)) {
      if (this.#holdings.stamp[oldest]! > stamp) return;
      this.#trim(oldest, this.#holdings.blocks[oldest]!);
    }
  }

  /** Follows the chain down the tree, up to block `limit`, and returns how far it went. */
  #walk({ hashes }: BlockChain, limit: number): number {
    const segments = this.#segments;
    let depth = 0;
    let above = NO_SEGMENT;
    this.#pathLength = 0;
    this.#lastBlocks = 0;
    while (depth < limit) {
      const segment = segments.find(hashes, depth);
      if (segment === NO_SEGMENT || segments.parent[segment] !== above) break;
      const comparable = Math.min(segments.length[segment]!, limit - depth);
      const equal = segments.common(segment, hashes, depth, comparable);
      this.#path[this.#pathLength++] = segment;
      this.#lastBlocks = equal;
      depth += equal;
      if (equal < segments.length[segment]!) break;
      above = segment;
    }
    return depth;
  }

  /** The slot's holding of the deepest segment on the path that it has one of; ancestors are held, so bisection finds it. */
  #deepestOnPath(slot: number): number {
    let deepest = NO_HOLDING;
    let low = 0;
    let high = this.#pathLength;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const holding = this.#holdings.find(this.#path[middle]!, slot);
      if (holding === NO_HOLDING) high = middle;
      else {
        deepest = holding;
        low = middle + 1;
      }
    }
    return deepest;
  }

  /** Leading blocks of the chain that the slot holds. */
  #heldOnPath(deepest: number): number {
    if (deepest === NO_HOLDING) return 0;
    const segment = this.#holdings.segment[deepest]!;
    const blocks = this.#holdings.blocks[deepest]!;
    const matched = segment === this.#lastSegment ? Math.min(blocks, this.#lastBlocks) : blocks;
    return this.#segments.start[segment]! + matched;
  }

  /** Splits the last segment of the path if the chain branches off inside it, or ends inside what the slot holds of it. */
  #splitWhereLeft(deepest: number, goesOn: boolean): number {
    const last = this.#lastSegment;
    const matched = this.#lastBlocks;
    if (matched === this.#segments.length[last]) return deepest;
    const holdsMore =
      deepest !== NO_HOLDING && this.#holdings.segment[deepest] === last && this.#holdings.blocks[deepest]! > matched;
    if (!goesOn && !holdsMore) return deepest;
    const head = this.#segments.split(last, matched);
    this.#holdings.split(last, head);
    this.#path[this.#pathLength - 1] = head;
    return holdsMore ? this.#holdings.parent[deepest]! : deepest;
  }

  /** Makes the slot hold the whole path, of which it has `deepest` and what is above. Returns the deepest holding. */
  #holdPath(slot: number, deepest: number, stamp: number): number {
    const path = this.#path;
    let holding = deepest;
    let i = 0;
    if (deepest !== NO_HOLDING) {
      while (i < this.#pathLength && path[i] !== this.#holdings.segment[deepest]) i++;
      this.#holdings.blocks[deepest] = this.#blocksOnPath(i);
      i++;
    }
    for (; i < this.#pathLength; i++) {
      holding = this.#holdings.add(path[i]!, slot, this.#blocksOnPath(i), holding, stamp);
    }
    return holding;
  }

  get #lastSegment(): number {
    return this.#pathLength === 0 ? NO_SEGMENT : this.#path[this.#pathLength - 1]!;
  }

  #blocksOnPath(i: number): number {
    return i === this.#pathLength - 1 ? this.#lastBlocks : this.#segments.length[this.#path[i]!]!;
  }

  /** Adds blocks [from, to) of the chain to the tree below the path, held by the slot. Returns the deepest holding. */
  #append(slot: number, chain: BlockChain, from: number, to: number, above: number, stamp: number): number {
    const segments = this.#segments;
    const holdings = this.#holdings;
    let depth = from;
    let holding = above;
    let segment = this.#lastSegment;
    if (segment !== NO_SEGMENT && segments.children[segment] === 0) {
      const blocks = Math.min(to - depth, RUN_BLOCKS_MAX - segments.length[segment]!);
      if (blocks > 0) {
        segments.extend(segment, chain.hashes, depth, blocks);
        holdings.blocks[holding]! += blocks;
        depth += blocks;
      }
    }
    while (depth < to) {
      // Another chain's segment under the same 64 bits: the rest of this one stays unknown.
      if (segments.find(chain.hashes, depth) !== NO_SEGMENT) break;
      const blocks = Math.min(to - depth, RUN_BLOCKS_MAX);
      segment = segments.add(segment, chain.hashes, depth, blocks);
      segments.firstHolding[segment] = NO_HOLDING;
      holding = holdings.add(segment, slot, blocks, holding, stamp);
      depth += blocks;
    }
    return holding;
  }

  /** Blocks from the root to the end of the holding. */
  #endOf(holding: number): number {
    if (holding === NO_HOLDING) return 0;
    return this.#segments.start[this.#holdings.segment[holding]!]! + this.#holdings.blocks[holding]!;
  }

  #evict(slot: number): void {
    for (;;) {
      const excess = this.#sizes[slot]! - this.#capacities[slot]!;
      if (excess <= 0) return;
      const oldest = this.#holdings.oldest(slot);
      this.#trim(oldest, Math.min(excess, this.#holdings.blocks[oldest]!));
    }
  }

  /** Takes the last blocks off a holding without children, and what nobody holds any more out of the tree. */
  #trim(holding: number, blocks: number): void {
    const holdings = this.#holdings;
    const segments = this.#segments;
    const segment = holdings.segment[holding]!;
    const before = holdings.blocks[holding]!;
    this.#sizes[holdings.slot[holding]!]! -= blocks;
    if (blocks === before) holdings.remove(holding);
    else holdings.blocks[holding] = before - blocks;
    if (before < segments.length[segment]!) return;
    const kept = holdings.blocksMax(segment);
    if (kept === 0) segments.remove(segment);
    else if (kept < before) segments.truncate(segment, kept);
  }

  #assertTaken(slot: number): void {
    assert(this.#endpoints[slot] !== undefined, "the slot belongs to an endpoint");
  }
}

function assertCapacity(blocks: number): void {
  assert(Number.isInteger(blocks) && blocks >= 0, "a capacity is a whole number of blocks");
}

const NO_SEGMENT = -1;

/** As HOLDINGS_MIN: an empty table is made in a third of the time. */
const SEGMENTS_MIN = 16;

/**
 * The nodes of the prefix tree, and where to find them. A segment stands for a run of consecutive blocks without a
 * branch; its first hash is its key, and because hashes are chained a key is found without knowing the parent.
 */
class SegmentTable {
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
    return this.#runs.common(this.#run[segment]!, 0, hashes, block, limit);
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
