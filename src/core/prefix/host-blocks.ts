import type { BlockChain } from "../prompt/block-chain.ts";
import { ConfirmedBlocks } from "./confirmed-blocks.ts";

/** Blocks in its host's memory that one endpoint may report, as a multiple of its device's. */
const BLOCKS_PER_CAPACITY_MAX = 64;

/**
 * Blocks that engines report in the memory of their hosts. An engine looks there for what follows the blocks on its
 * device, so what counts of a chain is the run of blocks that begins where the device's end.
 */
export class HostBlocks {
  readonly #blocks = new ConfirmedBlocks({ referencesPerCapacity: BLOCKS_PER_CAPACITY_MAX, reserves: false });
  /** Slots of which something was reported. */
  readonly #slots = new Set<number>();

  get bytes(): number {
    return this.#blocks.bytes;
  }

  /** Whether nothing was ever reported, and nothing need be looked up. */
  get isUnused(): boolean {
    return this.#slots.size === 0;
  }

  get strayRemovals(): number {
    return this.#blocks.strayRemovals;
  }

  get refusedBlocks(): number {
    return this.#blocks.refusedBlocks;
  }

  /** Distinct blocks of the endpoint there. */
  size(slot: number): number {
    return this.#slots.has(slot) ? this.#blocks.size(slot) : 0;
  }

  stored(slot: number, capacityBlocks: number, hashes: Int32Array): void {
    if (!this.#slots.has(slot)) {
      this.#slots.add(slot);
      this.#blocks.join(slot, capacityBlocks);
    }
    this.#blocks.stored(slot, hashes);
  }

  removed(slot: number, hashes: Int32Array): void {
    if (this.#slots.has(slot)) this.#blocks.removed(slot, hashes);
  }

  /** Nothing is known any more of what the endpoint has there. */
  forget(slot: number): void {
    if (this.#slots.delete(slot)) this.#blocks.leave(slot);
  }

  /** Raises `hits[slot]`, the leading blocks on the device, by the blocks that follow them in the host's memory. */
  follow(chain: BlockChain, hits: Int32Array): void {
    for (let depth = this.#begin(hits, 0); depth < chain.length;) {
      depth = this.#begin(hits, this.#blocks.match(chain, hits, depth));
    }
  }

  /** The least depth from `from` on at which some endpoint's blocks on its device end; Infinity for none. */
  #begin(hits: Int32Array, from: number): number {
    let first = Infinity;
    for (const slot of this.#slots) {
      const depth = hits[slot]!;
      if (depth >= from && depth < first) first = depth;
    }
    return first;
  }
}
