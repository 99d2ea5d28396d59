import { assert } from "#core/base/assert.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { BlockIndex } from "./block-index.ts";
import { BlockOrder } from "./block-order.ts";
import { BLOCK_WORDS, type BlockRecords, CONTENT, createRecords, HASHED, HIGH, LOW } from "./block-record.ts";
import type { KvTierConfig } from "./config.ts";
import type { EngineSink } from "./sink.ts";

/**
 * KV blocks in the memory of the host. A full block that is released on a GPU in use beyond the threshold is copied out
 * in the background; a prompt whose prefix goes on here, past what the GPU holds, has it copied back:
 *
 *   transfer = base + blocks * blockBytes / bytesPerSecond
 *
 * which lengthens the step that admits the prompt. The block copied out or back least recently makes room. A block here
 * stays when it is copied back, and each content is here once.
 */
export class KvTier {
  copiedOut = 0;
  copiedBack = 0;
  /** Blocks that were overwritten here. */
  dropped = 0;
  /** Blocks copied back soon after they had been copied out. */
  thrashed = 0;
  readonly #config: KvTierConfig;
  readonly #records: BlockRecords;
  readonly #order: BlockOrder;
  readonly #index: BlockIndex;
  readonly #copiedOutAt: Float64Array;
  readonly #sink: Pick<EngineSink, "tierBlockStored" | "tierBlockRemoved">;

  constructor(config: KvTierConfig, sink: Pick<EngineSink, "tierBlockStored" | "tierBlockRemoved"> = {}) {
    this.#config = config;
    this.#sink = sink;
    this.#records = createRecords(config.cpuBlocks);
    this.#order = new BlockOrder(this.#records);
    for (let slot = 0; slot < config.cpuBlocks; slot++) this.#order.pushBack(slot);
    this.#index = new BlockIndex(this.#records, config.cpuBlocks);
    this.#copiedOutAt = new Float64Array(config.cpuBlocks);
  }

  /** Blocks that are here. */
  get size(): number {
    return this.#index.size;
  }

  /** Whether a GPU with so many used of its blocks copies out what it releases. */
  wants(usedBlocks: number, usableBlocks: number): boolean {
    return usedBlocks >= this.#config.offloadThreshold * usableBlocks;
  }

  /** Block i of the chain is released on the GPU. */
  copyOut(hashes: Int32Array, i: number, at: Micros): void {
    const present = this.#index.find(hashes, i);
    if (present >= 0) {
      this.#touch(present);
      return;
    }
    const slot = this.#order.popFront();
    const word = slot * BLOCK_WORDS + CONTENT;
    if (this.#records[word] === HASHED) {
      const record = slot * BLOCK_WORDS;
      this.#sink.tierBlockRemoved?.(at, this.#records[record + LOW]!, this.#records[record + HIGH]!);
      this.#index.remove(slot);
      this.dropped++;
    }
    this.#records[word] = HASHED;
    this.#index.insert(slot, hashes, i);
    this.#order.pushBack(slot);
    this.#copiedOutAt[slot] = at;
    this.copiedOut++;
    this.#sink.tierBlockStored?.(at, hashes[2 * i]!, hashes[2 * i + 1]!);
  }

  /** How many blocks of the chain from block `first` on are here, up to block `end`. */
  following(hashes: Int32Array, first: number, end: number): number {
    const limit = Math.min(end, hashes.length >> 1);
    let i = first;
    while (i < limit && this.#index.find(hashes, i) >= 0) i++;
    return i - first;
  }

  /** Copies blocks [first, first + count) of the chain back; returns how long that takes. */
  copyBack(hashes: Int32Array, first: number, count: number, at: Micros): number {
    for (let i = first; i < first + count; i++) {
      const slot = this.#index.find(hashes, i);
      assert(slot >= 0, "a block that is copied back is there");
      this.#touch(slot);
      if (at - (this.#copiedOutAt[slot] as number) <= this.#config.thrashWindowMicros) this.thrashed++;
    }
    this.copiedBack += count;
    const { transferBaseMicros, blockBytes, bytesPerSecond } = this.#config;
    return transferBaseMicros + ((count * blockBytes) / bytesPerSecond) * MICROS_PER_SECOND;
  }

  /** Asserts that what came and did not go is here, and fits. */
  verify(): void {
    assert(this.copiedOut - this.dropped === this.size, "every block copied out is here or was dropped");
    assert(this.#order.size === this.#config.cpuBlocks, "the host's blocks are all in order");
  }

  #touch(slot: number): void {
    this.#order.remove(slot);
    this.#order.pushBack(slot);
  }
}
