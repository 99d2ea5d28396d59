import { assert } from "#core/assert.ts";
import type { Micros } from "#core/units.ts";
import { BlockIndex } from "./block-index.ts";
import { BlockOrder } from "./block-order.ts";
import {
  ANONYMOUS,
  BLOCK_WORDS,
  type BlockRecords,
  CONTENT,
  createRecords,
  HASHED,
  HIGH,
  LOW,
  NOTHING,
  PARTIAL,
  REFERENCES,
} from "./block-record.ts";
import type { EngineConfig } from "./config.ts";
import { KvTier } from "./kv-tier.ts";
import type { Sequence } from "./sequence.ts";
import type { EngineSink } from "./sink.ts";

/** Records per usable block: the more, the further apart are those that still hold something when one is sought. */
const RECORDS_PER_BLOCK = 2;

/**
 * vLLM's block pool. Full blocks keep their content after release and can be hit until they are overwritten; the free
 * list is the order of overwriting. A request's blocks are released last block first, so that the tail of a sequence
 * goes before its head; a partial block can never be hit and goes to the front of the list.
 *
 * Which physical block holds what cannot be seen from outside. So what is at the front of the list without content is
 * only counted, and a block that is taken gets the next record in turn that stands for nothing, whatever block was
 * overwritten for it: records of one request lie side by side, which is what makes this fast.
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
  readonly #sink: EngineSink;
  /** Free blocks without content at the front of the list. */
  #blank: number;
  /** The other free blocks. */
  readonly #order: BlockOrder;
  readonly #index: BlockIndex;
  readonly #records: BlockRecords;
  readonly #recordCount: number;
  #nextRecord = 0;
  #hits = new Int32Array(64);
  /** Holders per block, all 0 between verifications. */
  #held: Int32Array | undefined;

  constructor(config: EngineConfig, sink: EngineSink) {
    this.usable = config.kvBlocks - 1;
    this.blockTokens = config.blockTokens;
    this.#caching = config.prefixCaching;
    this.#partialToFront = config.semantics.partialBlocks === "front";
    this.#sink = sink;
    this.tier = config.tier === undefined || !config.prefixCaching ? undefined : new KvTier(config.tier);
    this.#blank = this.usable;
    this.#recordCount = this.usable * RECORDS_PER_BLOCK;
    this.#records = createRecords(this.#recordCount);
    this.#order = new BlockOrder(this.#records);
    this.#index = new BlockIndex(this.#records, this.usable, config.semantics.duplicates === "last-writer");
  }

  get free(): number {
    return this.#blank + this.#order.size;
  }

  get used(): number {
    return this.usable - this.free;
  }

  /** Leading blocks of a chain that are in the cache, at most `blocksMax`; touches nothing. */
  prefixBlocks(lanes: Int32Array, blocksMax: number): number {
    const limit = Math.min(blocksMax, lanes.length >> 1);
    let count = 0;
    while (count < limit && this.#index.find(lanes, count) >= 0) count++;
    return count;
  }

  /** Finds the leading blocks of a chain, at most `blocksMax`, for a following claim. */
  lookup(lanes: Int32Array, blocksMax: number): number {
    const limit = this.#caching ? Math.min(blocksMax, lanes.length >> 1) : 0;
    if (limit > this.#hits.length) this.#hits = new Int32Array(limit * 2);
    let count = 0;
    let free = 0;
    for (; count < limit; count++) {
      const block = this.#index.find(lanes, count);
      if (block < 0) break;
      this.#hits[count] = block;
      if (this.#records[block * BLOCK_WORDS + REFERENCES] === 0) free++;
    }
    this.hitCount = count;
    this.hitFree = free;
    return count;
  }

  /** Gives the blocks of the last lookup to a sequence that holds none. */
  claim(sequence: Sequence): void {
    for (let i = 0; i < this.hitCount; i++) {
      const block = this.#hits[i] as number;
      const word = block * BLOCK_WORDS + REFERENCES;
      const references = this.#records[word] as number;
      if (references === 0) this.#order.remove(block);
      this.#records[word] = references + 1;
      sequence.pushBlock(block);
    }
    sequence.cachedBlocks = this.hitCount;
    this.blockHits += this.hitCount;
  }

  /** Blocks that the sequence lacks to hold `tokens` tokens. */
  lacking(sequence: Sequence, tokens: number): number {
    return Math.ceil(tokens / this.blockTokens) - sequence.unclaimed - sequence.blockCount;
  }

  /** Gives the sequence so many empty blocks, which must be free; overwrites what they held. */
  take(sequence: Sequence, count: number, at: Micros): void {
    for (let i = 0; i < count; i++) {
      if (this.#blank > 0) this.#blank--;
      else this.#overwrite(this.#order.popFront(), at);
      const block = this.#freshRecord();
      const word = block * BLOCK_WORDS;
      this.#records[word + CONTENT] = PARTIAL;
      this.#records[word + REFERENCES] = 1;
      sequence.pushBlock(block);
    }
    if (count > 0) this.blockMisses += count;
  }

  #freshRecord(): number {
    let record = this.#nextRecord;
    while (this.#records[record * BLOCK_WORDS + CONTENT] !== NOTHING) record = (record + 1) % this.#recordCount;
    this.#nextRecord = (record + 1) % this.#recordCount;
    return record;
  }

  #overwrite(block: number, at: Micros): void {
    const word = block * BLOCK_WORDS;
    if (this.#records[word + CONTENT] === HASHED) {
      if (this.#sink.blockRemoved !== undefined && this.#index.has(block)) {
        this.#sink.blockRemoved(at, this.#records[word + LOW] as number, this.#records[word + HIGH] as number);
      }
      this.#index.remove(block);
    }
    this.#records[word + CONTENT] = NOTHING;
  }

  /** The first `tokens` tokens of the sequence are being computed: its full blocks can be hit from now on. */
  store(sequence: Sequence, tokens: number, at: Micros): void {
    if (!this.#caching) return;
    const full = Math.floor(tokens / this.blockTokens);
    const first = sequence.cachedBlocks;
    if (full <= first) return;
    const { lanes } = sequence.request;
    const known = Math.min(full, sequence.unclaimed > 0 ? 0 : lanes.length >> 1);
    for (let i = Math.max(first, sequence.unclaimed); i < full; i++) {
      const block = sequence.blocks[i - sequence.unclaimed] as number;
      if (i < known) this.#index.insert(block, lanes, i);
      this.#records[block * BLOCK_WORDS + CONTENT] = i < known ? HASHED : ANONYMOUS;
    }
    sequence.cachedBlocks = full;
    if (known > first) this.#sink.blocksStored?.(at, sequence.request, first, known - first);
  }

  /** Takes all blocks from the sequence. */
  release(sequence: Sequence, at: Micros): void {
    const { tier, usable } = this;
    const { lanes } = sequence.request;
    const copyOut = tier?.wants(this.used, usable) === true && sequence.unclaimed === 0;
    for (let i = sequence.blockCount - 1; i >= 0; i--) {
      const block = sequence.blocks[i] as number;
      const word = block * BLOCK_WORDS;
      const references = (this.#records[word + REFERENCES] as number) - 1;
      this.#records[word + REFERENCES] = references;
      if (references > 0) continue;
      const content = this.#records[word + CONTENT];
      if (this.#partialToFront && content === PARTIAL) {
        this.#records[word + CONTENT] = NOTHING;
        this.#blank++;
      } else this.#order.pushBack(block);
      if (copyOut && content === HASHED) tier?.copyOut(lanes, i, at);
    }
    this.releases++;
    sequence.blockCount = 0;
    sequence.unclaimed = 0;
    sequence.cachedBlocks = 0;
  }

  /** Asserts that used and free blocks make up the pool and that references agree with what the sequences hold. */
  verify(running: readonly Sequence[]): void {
    this.#held ??= new Int32Array(this.#recordCount);
    const held = this.#held;
    let distinct = 0;
    for (const sequence of running) {
      for (let i = 0; i < sequence.blockCount; i++) {
        const block = sequence.blocks[i] as number;
        if (held[block] === 0) distinct++;
        held[block] = (held[block] as number) + 1;
      }
    }
    assert(distinct + this.free === this.usable, "used and free KV blocks make up the pool");
    this.tier?.verify();
    for (const sequence of running) {
      for (let i = 0; i < sequence.blockCount; i++) {
        const block = sequence.blocks[i] as number;
        const holders = held[block] as number;
        held[block] = 0;
        const references = this.#records[block * BLOCK_WORDS + REFERENCES];
        assert(holders === 0 || holders === references, "a KV block's references are its holders");
      }
    }
  }
}
