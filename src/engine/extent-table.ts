import {
  ALONE,
  COMPACT,
  createExtents,
  EXTENT_WORDS,
  type ExtentRecords,
  HIGH,
  LAST_HIGH,
  LAST_LENGTH,
  LAST_LOW,
  LENGTH,
  LOW,
  NEXT,
  NO_EXTENT,
  OFFSET,
  OPAQUE,
  REFERENCES,
  REST,
  STATE,
  TWIN,
  TWINNED,
} from "./extent-record.ts";
import { ExtentOrder } from "./extent-order.ts";

const BUCKETS_MIN = 64;
const NO_HASHES = new Int32Array(0);

/**
 * Extents, and where a content is found. Content is a place in a chain: block i of `hashes`, where equal words mean that
 * all blocks up to it are equal. So an extent is known by its first block, how far a chain follows it is found by
 * bisection, and a branch is always at an extent's end: a chain that leaves one in the middle cuts it.
 *
 * Several extents may hold the same content (requests that computed it side by side). They are twins, equally long, and
 * a lookup gives the one that was entered first, as vLLM's does. With `lastWriter` it gives the last, and none from when
 * any of them is overwritten until another is entered; a child may then outlive its parent, and so extents must have one
 * block each.
 */
export class ExtentTable {
  /** Another, longer array once an extent was entered or cut for which there was no room. */
  records: ExtentRecords = createExtents();
  readonly order = new ExtentOrder(this.records);
  readonly #lastWriter: boolean;
  /** Per extent: hashes that have its content from word OFFSET on. */
  readonly #hashes: Int32Array[] = [NO_HASHES];
  #free = NO_EXTENT;
  #used = NO_EXTENT + 1;
  /** Open addressing, linear probing, at most half full: the extent that a lookup gives, or NO_EXTENT. */
  #buckets = new Int32Array(BUCKETS_MIN);
  #distinct = 0;

  constructor(lastWriter: boolean) {
    this.#lastWriter = lastWriter;
  }

  /** The extent that begins with block i of the chain, or NO_EXTENT. */
  find(hashes: Int32Array, i: number): number {
    return this.#buckets[this.#bucketOf(hashes[2 * i] as number, hashes[2 * i + 1] as number)] as number;
  }

  /** How many blocks of the extent, at most `limit`, are in the chain from block i on, given that its first one is. */
  common(extent: number, hashes: Int32Array, i: number, limit: number): number {
    const length = this.records[extent * EXTENT_WORDS + LENGTH] as number;
    // An extent that is in the chain whole is the usual case, so the last block is looked at first.
    if (length <= limit && this.#endsWith(extent, length, hashes, i)) return length;
    const kept = this.#hashes[extent] as Int32Array;
    const from = this.records[extent * EXTENT_WORDS + OFFSET] as number;
    let equal = 1;
    for (let most = Math.min(limit, length); equal < most;) {
      const probe = (equal + most + 1) >>> 1;
      const at = 2 * (probe - 1);
      if (kept[from + at] === hashes[2 * i + at] && kept[from + at + 1] === hashes[2 * i + at + 1]) equal = probe;
      else most = probe - 1;
    }
    return equal;
  }

  /** Whether its last block is in the chain where it would be, if the extent's first is block i. */
  #endsWith(extent: number, length: number, hashes: Int32Array, i: number): boolean {
    const { records } = this;
    const word = extent * EXTENT_WORDS;
    if (records[word + LAST_LENGTH] !== length) {
      records[word + LAST_LENGTH] = length;
      records[word + LAST_LOW] = this.content(extent, length - 1, 0);
      records[word + LAST_HIGH] = this.content(extent, length - 1, 1);
    }
    const last = 2 * (i + length - 1);
    return hashes[last] === records[word + LAST_LOW] && hashes[last + 1] === records[word + LAST_HIGH];
  }

  /** A new extent of `count` blocks from block i of the chain on, held once. Twins, if there are any, are as long. */
  enter(hashes: Int32Array, i: number, count: number): number {
    const extent = this.#create(ALONE, count, 1);
    const { records } = this;
    const word = extent * EXTENT_WORDS;
    const low = hashes[2 * i] as number;
    const high = hashes[2 * i + 1] as number;
    records[word + LOW] = low;
    records[word + HIGH] = high;
    records[word + OFFSET] = 2 * i;
    this.#hashes[extent] = hashes;
    const bucket = this.#bucketOf(low, high);
    const first = this.#buckets[bucket] as number;
    if (first === NO_EXTENT) {
      this.#link(bucket, extent);
      return extent;
    }
    if (this.#lastWriter) {
      this.#buckets[bucket] = extent;
      return extent;
    }
    records[word + STATE] = TWINNED;
    records[first * EXTENT_WORDS + STATE] = TWINNED;
    let last = first;
    for (let twin = last; twin !== NO_EXTENT; twin = this.#twin(twin)) last = twin;
    records[last * EXTENT_WORDS + TWIN] = extent;
    return extent;
  }

  /** A new extent that nothing finds and nobody holds. */
  enterOpaque(count: number): number {
    return this.#create(OPAQUE, count, 0);
  }

  /**
   * Appends blocks [i, i + count) of the chain to an extent that a sequence of that very chain holds alone; false where
   * that cannot be.
   */
  append(extent: number, hashes: Int32Array, i: number, count: number): boolean {
    const { records } = this;
    const word = extent * EXTENT_WORDS;
    if (records[word + REFERENCES] !== 1 || records[word + STATE] !== ALONE || this.#lastWriter) return false;
    const length = records[word + LENGTH] as number;
    if (this.#hashes[extent] !== hashes || (records[word + OFFSET] as number) + 2 * length !== 2 * i) return false;
    records[word + LENGTH] = length + count;
    return true;
  }

  /** Cuts the extent, and its twins, after `blocks` blocks. Returns the extent that has the rest of its blocks. */
  cut(extent: number, blocks: number): number {
    if (this.records[extent * EXTENT_WORDS + STATE] !== TWINNED) {
      const tail = this.#cutOne(extent, blocks);
      if (this.records[tail * EXTENT_WORDS + STATE] === ALONE) this.#link(this.#bucketFor(tail), tail);
      return tail;
    }
    let own = NO_EXTENT;
    let last = NO_EXTENT;
    for (let twin = this.#buckets[this.#bucketFor(extent)] as number; twin !== NO_EXTENT; twin = this.#twin(twin)) {
      const tail = this.#cutOne(twin, blocks);
      if (twin === extent) own = tail;
      if (last === NO_EXTENT) this.#link(this.#bucketFor(tail), tail);
      else this.records[last * EXTENT_WORDS + TWIN] = tail;
      last = tail;
    }
    return own;
  }

  /** Takes the last `blocks` blocks, not all, off an extent in the order that has no twins. */
  shorten(extent: number, blocks: number): void {
    this.records[extent * EXTENT_WORDS + LENGTH]! -= blocks;
    this.order.shorten(blocks);
  }

  /** Removes an extent that is in the order. Its twins stay, or with `lastWriter` nothing finds its content any more. */
  remove(extent: number): void {
    this.order.remove(extent);
    const state = this.records[extent * EXTENT_WORDS + STATE];
    if (state === TWINNED) this.#leaveTwins(extent);
    else if (state === ALONE && this.isFound(extent)) this.#unlink(this.#bucketFor(extent));
    this.#hashes[extent] = NO_HASHES;
    this.records[extent * EXTENT_WORDS + NEXT] = this.#free;
    this.#free = extent;
  }

  /** Whether a lookup finds its content, there or in another extent. */
  isFound(extent: number): boolean {
    if (this.records[extent * EXTENT_WORDS + STATE] === OPAQUE) return false;
    return !this.#lastWriter || this.#buckets[this.#bucketFor(extent)] !== NO_EXTENT;
  }

  /** An extent that others than its maker want will stay: it keeps its content alone, not all of its maker's chain. */
  compact(extent: number): void {
    const word = extent * EXTENT_WORDS;
    if (this.records[word + COMPACT] === 1) return;
    const from = this.records[word + OFFSET] as number;
    const length = this.records[word + LENGTH] as number;
    this.#hashes[extent] = (this.#hashes[extent] as Int32Array).slice(from, from + 2 * length);
    this.records[word + OFFSET] = 0;
    this.records[word + COMPACT] = 1;
  }

  /** Word `word` of the content of the extent's block `place`: 0 is the low one, 1 the high one. */
  content(extent: number, place: number, word: 0 | 1): number {
    const from = this.records[extent * EXTENT_WORDS + OFFSET] as number;
    return (this.#hashes[extent] as Int32Array)[from + 2 * place + word] as number;
  }

  #create(state: number, length: number, references: number): number {
    let extent = this.#free;
    if (extent === NO_EXTENT) {
      extent = this.#used++;
      if (extent * EXTENT_WORDS === this.records.length) this.#grow();
    } else this.#free = this.records[extent * EXTENT_WORDS + NEXT] as number;
    const { records } = this;
    const word = extent * EXTENT_WORDS;
    records[word + STATE] = state;
    records[word + LENGTH] = length;
    records[word + REFERENCES] = references;
    records[word + TWIN] = NO_EXTENT;
    records[word + REST] = NO_EXTENT;
    records[word + COMPACT] = 0;
    records[word + LAST_LENGTH] = 0;
    return extent;
  }

  #grow(): void {
    const longer = new Int32Array(2 * this.records.length);
    longer.set(this.records);
    this.records = longer;
    this.order.move(longer);
  }

  #cutOne(extent: number, blocks: number): number {
    const word = extent * EXTENT_WORDS;
    const length = this.records[word + LENGTH] as number;
    const references = this.records[word + REFERENCES] as number;
    const tail = this.#create(this.records[word + STATE] as number, length - blocks, references);
    const { records } = this;
    const tailWord = tail * EXTENT_WORDS;
    this.#hashes[tail] = this.#hashes[extent] as Int32Array;
    records[tailWord + LOW] = this.content(extent, blocks, 0);
    records[tailWord + HIGH] = this.content(extent, blocks, 1);
    records[tailWord + OFFSET] = (records[word + OFFSET] as number) + 2 * blocks;
    records[tailWord + COMPACT] = records[word + COMPACT] as number;
    records[tailWord + REST] = records[word + REST] as number;
    records[word + REST] = tail;
    records[word + LENGTH] = blocks;
    if (records[word + REFERENCES] === 0) this.order.cutOff(tail, extent);
    return tail;
  }

  #leaveTwins(extent: number): void {
    const { records } = this;
    const bucket = this.#bucketFor(extent);
    const first = this.#buckets[bucket] as number;
    const next = this.#twin(extent);
    if (first === extent) this.#buckets[bucket] = next;
    else {
      let before = first;
      while (this.#twin(before) !== extent) before = this.#twin(before);
      records[before * EXTENT_WORDS + TWIN] = next;
    }
    const left = this.#buckets[bucket] as number;
    if (this.#twin(left) === NO_EXTENT) records[left * EXTENT_WORDS + STATE] = ALONE;
  }

  #twin(extent: number): number {
    return this.records[extent * EXTENT_WORDS + TWIN] as number;
  }

  #bucketFor(extent: number): number {
    const word = extent * EXTENT_WORDS;
    return this.#bucketOf(this.records[word + LOW] as number, this.records[word + HIGH] as number);
  }

  /** Bucket of the content, or the empty one where it belongs. */
  #bucketOf(low: number, high: number): number {
    const buckets = this.#buckets;
    const { records } = this;
    const mask = buckets.length - 1;
    for (let bucket = hashOf(low, high) & mask; ; bucket = (bucket + 1) & mask) {
      const extent = buckets[bucket] as number;
      if (extent === NO_EXTENT) return bucket;
      const word = extent * EXTENT_WORDS;
      if (records[word + LOW] === low && records[word + HIGH] === high) return bucket;
    }
  }

  #link(bucket: number, extent: number): void {
    this.#buckets[bucket] = extent;
    this.#distinct++;
    if (2 * this.#distinct <= this.#buckets.length) return;
    const before = this.#buckets;
    this.#buckets = new Int32Array(2 * before.length);
    for (const other of before) if (other !== NO_EXTENT) this.#buckets[this.#bucketFor(other)] = other;
  }

  /** Empties the bucket and moves later entries of its cluster back, so that probing needs no tombstones. */
  #unlink(emptied: number): void {
    const buckets = this.#buckets;
    const mask = buckets.length - 1;
    this.#distinct--;
    let hole = emptied;
    for (let bucket = (hole + 1) & mask; buckets[bucket] !== NO_EXTENT; bucket = (bucket + 1) & mask) {
      const extent = buckets[bucket] as number;
      const word = extent * EXTENT_WORDS;
      const home = hashOf(this.records[word + LOW] as number, this.records[word + HIGH] as number) & mask;
      if (((bucket - home) & mask) < ((bucket - hole) & mask)) continue;
      buckets[hole] = extent;
      hole = bucket;
    }
    buckets[hole] = NO_EXTENT;
  }
}

/** Bucket before masking. They are hashes already, but a trace may bring small numbers. */
function hashOf(low: number, high: number): number {
  const mixed = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
