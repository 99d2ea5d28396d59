import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "./config.ts";
import type { ExtentOrder } from "./extent-order.ts";
import { EXTENT_WORDS, LENGTH, NO_EXTENT, REFERENCES, REST, STATE, TWINNED } from "./extent-record.ts";
import { ExtentTable } from "./extent-table.ts";
import { KvTier } from "./kv-tier.ts";
import type { Sequence } from "./sequence.ts";
import type { EngineSink } from "./sink.ts";

/**
 * vLLM's block pool. Full blocks keep their content after release and can be hit until they are overwritten; the free
 * list is the order of overwriting. A request's blocks are released last block first, so that the tail of a sequence
 * goes before its head; a partial block can never be hit and goes to the front of the list.
 *
 * Which physical block holds what cannot be seen from outside. So there are no blocks here but extents, rows of them
 * that share everything, and what is done to a prompt costs a step per extent. What is at the front of the list without
 * content is only counted, and so are the blocks of a sequence that nothing can find, while it holds them.
 */
export class KvCache {
  /** Blocks that can be used: one of vLLM's is reserved. */
  readonly usable: number;
  readonly blockTokens: number;
  blockHits = 0;
  blockMisses = 0;
  /** Releases so far: while it stands still, the free blocks can only have become fewer. */
  releases = 0;
  /** Leading blocks found by the last lookup, and how many of them nobody uses. */
  hitCount = 0;
  hitFree = 0;
  readonly tier: KvTier | undefined;
  readonly #caching: boolean;
  readonly #partialToFront: boolean;
  readonly #lastWriter: boolean;
  readonly #sink: EngineSink;
  /** Free blocks without content at the front of the list. */
  #blank: number;
  readonly #extents: ExtentTable;
  /** The other free blocks. */
  readonly #order: ExtentOrder;
  /** Extents of the last lookup, of the last one perhaps its first blocks only. */
  readonly #hits: number[] = [];
  #hitExtents = 0;
  /** Filled by `#partsOf`, up to its answer: an array that is emptied gives its room up. */
  readonly #parts: number[] = [];
  /** Of each extent, while `verify` counts them; all 0 otherwise. */
  #holders = new Int32Array(0);

  constructor(config: EngineConfig, sink: EngineSink) {
    this.usable = config.kvBlocks - 1;
    this.blockTokens = config.blockTokens;
    this.#caching = config.prefixCaching;
    this.#partialToFront = config.semantics.partialBlocks === "front";
    this.#lastWriter = config.semantics.duplicates === "last-writer";
    this.#sink = sink;
    this.tier = config.tier === undefined || !config.prefixCaching ? undefined : new KvTier(config.tier, sink);
    this.#blank = this.usable;
    this.#extents = new ExtentTable(this.#lastWriter);
    this.#order = this.#extents.order;
  }

  get free(): number {
    return this.#blank + this.#order.blocks;
  }

  get used(): number {
    return this.usable - this.free;
  }

  /** Takes the content off all blocks; false, and nothing, where some are in use. */
  reset(): boolean {
    if (this.used > 0) return false;
    while (this.#order.first !== NO_EXTENT) this.#extents.remove(this.#order.first);
    this.#blank = this.usable;
    return true;
  }

  /** Leading blocks of a chain that are in the cache, at most `blocksMax`; touches nothing. */
  prefixBlocks(hashes: Int32Array, blocksMax: number): number {
    const limit = Math.min(blocksMax, hashes.length >> 1);
    let count = 0;
    while (count < limit) {
      const extent = this.#extents.find(hashes, count);
      if (extent === NO_EXTENT) break;
      const length = this.#lengthOf(extent);
      const equal = this.#extents.common(extent, hashes, count, limit - count);
      count += equal;
      if (equal < length) break;
    }
    return count;
  }

  /** Finds the leading blocks of a chain, at most `blocksMax`, for a following claim. */
  lookup(hashes: Int32Array, blocksMax: number): number {
    const limit = this.#caching ? Math.min(blocksMax, hashes.length >> 1) : 0;
    let count = 0;
    let free = 0;
    let extents = 0;
    while (count < limit) {
      const extent = this.#extents.find(hashes, count);
      if (extent === NO_EXTENT) break;
      const length = this.#lengthOf(extent);
      const equal = this.#extents.common(extent, hashes, count, limit - count);
      this.#hits[extents++] = extent;
      if (this.#extents.records[extent * EXTENT_WORDS + REFERENCES] === 0) free += equal;
      count += equal;
      if (equal < length) break;
    }
    this.#hitExtents = extents;
    this.hitCount = count;
    this.hitFree = free;
    return count;
  }

  /** Gives the blocks of the last lookup to a sequence that holds none. */
  claim(sequence: Sequence): void {
    const extents = this.#extents;
    let left = this.hitCount;
    for (let i = 0; i < this.#hitExtents; i++) {
      const extent = this.#hits[i] as number;
      if (this.#lengthOf(extent) > left) extents.cut(extent, left);
      const word = extent * EXTENT_WORDS + REFERENCES;
      const references = this.#extents.records[word] as number;
      if (references === 0) this.#order.remove(extent);
      this.#extents.records[word] = references + 1;
      extents.compact(extent);
      const length = this.#lengthOf(extent);
      sequence.pushExtent(extent, length);
      left -= length;
    }
    sequence.blockCount += this.hitCount;
    sequence.cachedBlocks = this.hitCount;
    this.blockHits += this.hitCount;
  }

  /** Blocks that the sequence lacks to hold `tokens` tokens. */
  lacking(sequence: Sequence, tokens: number): number {
    return Math.ceil(tokens / this.blockTokens) - sequence.unclaimed - sequence.blockCount;
  }

  /** Gives the sequence so many empty blocks, which must be free; overwrites what they held. */
  take(sequence: Sequence, count: number, at: Micros): void {
    if (count <= 0) return;
    this.takeBlocks(count, at);
    sequence.blockCount += count;
  }

  /** For sequences that count their blocks themselves. */
  takeBlocks(count: number, at: Micros): void {
    const blank = Math.min(this.#blank, count);
    this.#blank -= blank;
    if (count > blank) this.#overwrite(count - blank, at);
    this.blockMisses += count;
  }

  #overwrite(count: number, at: Micros): void {
    const extents = this.#extents;
    for (let left = count; left > 0;) {
      let extent = this.#order.first;
      assert(extent !== NO_EXTENT, "a block is in order");
      const length = this.#lengthOf(extent);
      const blocks = Math.min(left, length);
      const twinned = this.#extents.records[extent * EXTENT_WORDS + STATE] === TWINNED;
      if (twinned && blocks < length) extent = extents.cut(extent, length - blocks);
      this.#tellRemoved(extent, blocks, at);
      if (blocks === this.#lengthOf(extent)) extents.remove(extent);
      else extents.shorten(extent, blocks);
      left -= blocks;
    }
  }

  /** The last `blocks` blocks of the extent, from its end. */
  #tellRemoved(extent: number, blocks: number, at: Micros): void {
    if (this.#sink.blockRemoved === undefined || !this.#extents.isFound(extent)) return;
    const length = this.#lengthOf(extent);
    for (let place = length - 1; place >= length - blocks; place--) {
      this.#sink.blockRemoved(at, this.#extents.content(extent, place, 0), this.#extents.content(extent, place, 1));
    }
  }

  /** The first `tokens` tokens of the sequence are being computed: its full blocks can be hit from now on. */
  store(sequence: Sequence, tokens: number, at: Micros): void {
    if (!this.#caching) return;
    const full = Math.floor(tokens / this.blockTokens);
    const first = sequence.cachedBlocks;
    if (full <= first) return;
    sequence.cachedBlocks = full;
    const known = Math.min(full, sequence.unclaimed > 0 ? 0 : sequence.knownBlocks);
    if (known <= first) return;
    this.#name(sequence, first, known);
    this.#sink.blocksStored?.(at, sequence.request, first, known - first);
  }

  /** Blocks [from, to) of the sequence, which holds all before them, get their content. */
  #name(sequence: Sequence, from: number, to: number): void {
    const extents = this.#extents;
    const { hashes } = sequence.request;
    for (let i = from; i < to;) {
      const present = extents.find(hashes, i);
      let count = this.#lastWriter ? 1 : to - i;
      if (present === NO_EXTENT) {
        // No block is cached without its parent, so none of the rest is here either.
        if (sequence.extentCount > 0 && extents.append(sequence.lastExtent, hashes, i, count)) {
          sequence.growExtent(count);
          return;
        }
      } else {
        count = extents.common(present, hashes, i, count);
        if (count < this.#lengthOf(present)) extents.cut(present, count);
      }
      sequence.pushExtent(extents.enter(hashes, i, count), count);
      i += count;
    }
  }

  /** Takes all blocks from the sequence. */
  release(sequence: Sequence, at: Micros): void {
    const { tier, usable } = this;
    const copyOut = tier?.wants(this.used, usable) === true && sequence.unclaimed === 0;
    const full = sequence.cachedBlocks - sequence.unclaimed;
    const partial = sequence.blockCount - full;
    let end = sequence.namedBlocks;
    let opaque = full - end;
    if (this.#partialToFront) this.#blank += partial;
    else opaque += partial;
    if (opaque > 0) this.#order.pushBack(this.#extents.enterOpaque(opaque));
    for (let i = sequence.extentCount - 1; i >= 0; i--) {
      const count = sequence.extentBlocks[i] as number;
      const parts = this.#partsOf(sequence.extents[i] as number, count);
      for (let part = parts - 1; part >= 0; part--) {
        const extent = this.#parts[part] as number;
        const first = end - this.#lengthOf(extent);
        if (this.#letGo(extent) && copyOut) {
          for (let block = end - 1; block >= first; block--) tier?.copyOut(sequence.request.hashes, block, at);
        }
        end = first;
      }
    }
    this.releases++;
    sequence.clearBlocks();
  }

  /** One holder less; true if that was the last. */
  #letGo(extent: number): boolean {
    const word = extent * EXTENT_WORDS + REFERENCES;
    const references = (this.#extents.records[word] as number) - 1;
    this.#extents.records[word] = references;
    if (references > 0) return false;
    this.#order.pushBack(extent);
    return true;
  }

  /** Into how many extents an extent of `count` blocks was cut since a sequence got it: the first ones of `#parts`. */
  #partsOf(extent: number, count: number): number {
    const parts = this.#parts;
    let found = 0;
    let part = extent;
    for (let left = count; left > 0; part = this.#extents.records[part * EXTENT_WORDS + REST] as number) {
      parts[found++] = part;
      left -= this.#lengthOf(part);
    }
    return found;
  }

  #lengthOf(extent: number): number {
    return this.#extents.records[extent * EXTENT_WORDS + LENGTH] as number;
  }

  /** The extents that the sequence holds, in order, with how many blocks each has. */
  eachExtent({ extentCount, extents, extentBlocks }: Sequence, visit: (extent: number, blocks: number) => void): void {
    const { records } = this.#extents;
    for (let i = 0; i < extentCount; i++) {
      let extent = extents[i] as number;
      for (let left = extentBlocks[i] as number; left > 0; extent = records[extent * EXTENT_WORDS + REST] as number) {
        const blocks = records[extent * EXTENT_WORDS + LENGTH] as number;
        visit(extent, blocks);
        left -= blocks;
      }
    }
  }

  /** Asserts that used and free blocks make up the pool and that references agree with what the sequences hold. */
  verify(running: readonly Sequence[]): void {
    const { records } = this.#extents;
    if (this.#holders.length < records.length / EXTENT_WORDS)
      this.#holders = new Int32Array(records.length / EXTENT_WORDS);
    const holders = this.#holders;
    let used = 0;
    for (const sequence of running) {
      used += sequence.blockCount - sequence.namedBlocks;
      this.eachExtent(sequence, (extent, blocks) => {
        const others = holders[extent] as number;
        if (others === 0) used += blocks;
        holders[extent] = others + 1;
      });
    }
    let agree = true;
    for (const sequence of running) {
      this.eachExtent(sequence, (extent) => {
        const count = holders[extent] as number;
        holders[extent] = 0;
        // 0 where it was looked at before.
        if (count !== 0 && count !== records[extent * EXTENT_WORDS + REFERENCES]) agree = false;
      });
    }
    assert(used + this.free === this.usable, "used and free KV blocks make up the pool");
    this.tier?.verify();
    assert(agree, "a KV block's references are its holders");
  }
}
