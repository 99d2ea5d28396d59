import { assert } from "../base/assert.ts";
import type { BlockChain } from "../prompt/block-chain.ts";
import { BlockCopies } from "./block-copies.ts";
import { blockKey, lowWordOf } from "./block-key.ts";
import { BlockRuns, NOWHERE } from "./block-runs.ts";
import { HoldingPool, NO_HOLDING } from "./holding-pool.ts";
import { RunJoiner } from "./run-joiner.ts";

export interface ConfirmedBlocksOptions {
  /** References that one endpoint may have, as a multiple of its capacity: beyond it, removals were lost on the way. */
  readonly referencesPerCapacity: number;
  /** Makes room in the table for every endpoint's capacity as it joins. */
  readonly reserves: boolean;
}

const OF_DEVICES: ConfirmedBlocksOptions = { referencesPerCapacity: 4, reserves: true };

interface Endpoint {
  capacityBlocks: number;
  /** Stored less removed, copies of a block counted each. */
  references: number;
  /** Distinct blocks. */
  blocks: number;
  /** Copies beyond the first, by hash. */
  readonly copies: BlockCopies;
  /** Blocks that must be there although nobody reported them: the high word of each, by hash. */
  readonly inferred: Map<number, number>;
}

/**
 * What engines reported that they hold, whatever the order and with gaps. An engine may hold several copies of a block;
 * it is gone when as many were removed as were stored.
 *
 * Blocks lie in runs. An endpoint's holding is always a leading part of a run: a gap inside one splits it, so gaps are
 * what costs, and engines free tails first. Runs that the same endpoints hold are joined when a chain shows that one
 * follows the other, because generated blocks arrive one by one.
 */
export class ConfirmedBlocks {
  readonly #runs = new BlockRuns();
  readonly #holdings = new HoldingPool(this.#runs);
  readonly #joiner = new RunJoiner(this.#runs, this.#holdings);
  readonly #endpoints: (Endpoint | undefined)[] = [];
  #capacityBlocks = 0;
  /** Removed blocks that were not there. */
  strayRemovals = 0;
  /** Stored blocks that were not recorded because their endpoint had too many. */
  refusedBlocks = 0;

  readonly #options: ConfirmedBlocksOptions;

  constructor(options: ConfirmedBlocksOptions = OF_DEVICES) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#runs.bytes + this.#holdings.bytes;
  }

  get runs(): number {
    return this.#runs.count;
  }

  join(slot: number, capacityBlocks: number): void {
    this.#endpoints[slot] = {
      capacityBlocks: 0,
      references: 0,
      blocks: 0,
      copies: new BlockCopies(),
      inferred: new Map(),
    };
    this.#holdings.addSlot(slot);
    this.resize(slot, capacityBlocks);
  }

  leave(slot: number): void {
    this.clear(slot);
    this.resize(slot, 0);
    this.#endpoints[slot] = undefined;
  }

  /** Room for the table, and the bound on references. Evicts nothing: what the engine holds is for it to say. */
  resize(slot: number, capacityBlocks: number): void {
    const endpoint = this.#endpoint(slot);
    this.#capacityBlocks += capacityBlocks - endpoint.capacityBlocks;
    endpoint.capacityBlocks = capacityBlocks;
    if (this.#options.reserves) this.#runs.reserve(this.#capacityBlocks);
  }

  clear(slot: number): void {
    const endpoint = this.#endpoint(slot);
    for (let h = this.#holdings.oldest(slot); h !== NO_HOLDING; h = this.#holdings.oldest(slot)) {
      this.#trim(h, this.#holdings.blocks[h]!);
    }
    endpoint.references = 0;
    endpoint.blocks = 0;
    endpoint.copies.clear();
    endpoint.inferred.clear();
  }

  /** Distinct blocks that the endpoint holds. */
  size(slot: number): number {
    return this.#endpoint(slot).blocks;
  }

  stored(slot: number, hashes: Int32Array): void {
    const endpoint = this.#endpoint(slot);
    const referencesMax = this.#options.referencesPerCapacity * endpoint.capacityBlocks;
    const blocks = hashes.length >> 1;
    // Where the block before is, so that a run which it ends can be continued.
    let holding = NO_HOLDING;
    for (let block = 0; block < blocks; block++) {
      if (endpoint.references >= referencesMax) {
        this.refusedBlocks += blocks - block;
        return;
      }
      if (endpoint.inferred.size > 0 && endpoint.inferred.delete(blockKey(hashes, block))) {
        holding = NO_HOLDING;
        continue;
      }
      endpoint.references++;
      const place = this.#runs.find(hashes, block);
      if (place === NOWHERE) holding = this.#storeNew(slot, hashes, block, holding, endpoint);
      else holding = this.#storeKnown(slot, hashes, block, place, endpoint);
    }
  }

  removed(slot: number, hashes: Int32Array): void {
    const endpoint = this.#endpoint(slot);
    for (let block = 0; block < hashes.length >> 1; block++) {
      if (endpoint.inferred.size > 0) endpoint.inferred.delete(blockKey(hashes, block));
      if (this.#remove(slot, hashes, block, endpoint)) endpoint.references--;
      else this.strayRemovals++;
    }
  }

  /** Takes all blocks of the chain as held, since the engine has just computed it, whether they were reported or not. */
  infer(slot: number, { hashes, length }: BlockChain): void {
    const endpoint = this.#endpoint(slot);
    const referencesMax = this.#options.referencesPerCapacity * endpoint.capacityBlocks;
    let holding = NO_HOLDING;
    for (let block = 0; block < length && endpoint.references < referencesMax; block++) {
      const place = this.#runs.find(hashes, block);
      if (place !== NOWHERE && this.#holds(slot, place)) {
        holding = NO_HOLDING;
        continue;
      }
      endpoint.references++;
      endpoint.inferred.set(blockKey(hashes, block), hashes[2 * block + 1]!);
      if (place === NOWHERE) holding = this.#storeNew(slot, hashes, block, holding, endpoint);
      else holding = this.#storeKnown(slot, hashes, block, place, endpoint);
    }
  }

  /** Forgets what was inferred and not reported since. */
  forgetInferred(slot: number): void {
    const endpoint = this.#endpoint(slot);
    if (endpoint.inferred.size === 0) return;
    const words = new Int32Array(2);
    for (const [key, high] of endpoint.inferred) {
      words[0] = lowWordOf(key);
      words[1] = high;
      if (this.#remove(slot, words, 0, endpoint)) endpoint.references--;
    }
    endpoint.inferred.clear();
  }

  /** Leading blocks of the chain that one endpoint holds. */
  leading(slot: number, chain: BlockChain): number {
    const runs = this.#runs;
    let depth = 0;
    while (depth < chain.length) {
      const place = runs.find(chain.hashes, depth);
      if (place === NOWHERE) return depth;
      const run = runs.runAt(place);
      const position = runs.positionAt(place);
      const limit = Math.min(runs.length[run]! - position, chain.length - depth);
      const equal = runs.common(run, position, chain.hashes, depth, limit);
      const holding = this.#holdings.find(run, slot);
      const held = holding === NO_HOLDING ? 0 : Math.min(this.#holdings.blocks[holding]! - position, equal);
      if (held < equal) return depth + Math.max(0, held);
      depth += equal;
    }
    return depth;
  }

  /**
   * Raises hits[slot], the depth from which the slot's blocks count, to the depth up to which it holds the chain's blocks.
   * Slots that begin before `depth` are left as they are. Returns the depth from which on others may begin.
   */
  match(chain: BlockChain, hits: Int32Array, depth = 0): number {
    const runs = this.#runs;
    const { slot, blocks, next } = this.#holdings;
    let goesOn = true;
    while (goesOn && depth < chain.length) {
      const place = runs.find(chain.hashes, depth);
      if (place === NOWHERE) return depth + 1;
      const run = runs.runAt(place);
      const position = runs.positionAt(place);
      const limit = Math.min(runs.length[run]! - position, chain.length - depth);
      const equal = runs.common(run, position, chain.hashes, depth, limit);
      goesOn = false;
      for (let h = runs.firstHolding[run]!; h !== NO_HOLDING; h = next[h]!) {
        const held = Math.min(blocks[h]! - position, equal);
        const begin = hits[slot[h]!]!;
        if (begin < depth || begin >= depth + held) continue;
        hits[slot[h]!] = depth + held;
        if (held === equal) goesOn = true;
      }
      depth += equal;
    }
    return depth;
  }

  /** Learns from a chain which runs follow each other, and joins those that the same endpoints hold whole. */
  learn(chain: BlockChain): void {
    this.#joiner.learn(chain);
  }

  #storeNew(slot: number, hashes: Int32Array, block: number, before: number, endpoint: Endpoint): number {
    const runs = this.#runs;
    const holdings = this.#holdings;
    endpoint.blocks++;
    if (before !== NO_HOLDING) {
      const run = holdings.segment[before]!;
      const endsRun = holdings.blocks[before] === runs.length[run];
      if (endsRun && runs.extend(run, hashes, block)) {
        holdings.blocks[before]!++;
        return before;
      }
    }
    const run = runs.add(hashes, block);
    runs.firstHolding[run] = NO_HOLDING;
    return holdings.add(run, slot, 1, NO_HOLDING, 0);
  }

  /** Returns the holding if the block is its last one now, else NO_HOLDING. */
  #storeKnown(slot: number, hashes: Int32Array, block: number, place: number, endpoint: Endpoint): number {
    const holdings = this.#holdings;
    const run = this.#runs.runAt(place);
    const position = this.#runs.positionAt(place);
    const holding = holdings.find(run, slot);
    const held = holding === NO_HOLDING ? 0 : holdings.blocks[holding]!;
    if (position < held) {
      endpoint.copies.add(hashes, block);
      return position === held - 1 ? holding : NO_HOLDING;
    }
    endpoint.blocks++;
    if (position > held) {
      holdings.split(run, this.#runs.split(run, position));
      return holdings.add(run, slot, 1, NO_HOLDING, 0);
    }
    if (holding === NO_HOLDING) return holdings.add(run, slot, 1, NO_HOLDING, 0);
    holdings.blocks[holding] = held + 1;
    return holding;
  }

  #remove(slot: number, hashes: Int32Array, block: number, endpoint: Endpoint): boolean {
    const holdings = this.#holdings;
    const place = this.#runs.find(hashes, block);
    if (place === NOWHERE) return false;
    let run = this.#runs.runAt(place);
    const position = this.#runs.positionAt(place);
    let holding = holdings.find(run, slot);
    if (holding === NO_HOLDING || position >= holdings.blocks[holding]!) return false;
    if (endpoint.copies.take(hashes, block)) return true;
    if (position < holdings.blocks[holding]! - 1) {
      const head = this.#runs.split(run, position + 1);
      holdings.split(run, head);
      run = head;
      holding = holdings.find(run, slot);
    }
    this.#trim(holding, 1);
    endpoint.blocks--;
    return true;
  }

  /** Takes the last blocks off a holding, and what nobody holds any more out of the run. */
  #trim(holding: number, blocks: number): void {
    const holdings = this.#holdings;
    const run = holdings.segment[holding]!;
    const before = holdings.blocks[holding]!;
    if (blocks === before) holdings.remove(holding);
    else holdings.blocks[holding] = before - blocks;
    if (before < this.#runs.length[run]!) return;
    const kept = holdings.blocksMax(run);
    if (kept < before) this.#runs.truncate(run, kept);
  }

  #holds(slot: number, place: number): boolean {
    const holding = this.#holdings.find(this.#runs.runAt(place), slot);
    return holding !== NO_HOLDING && this.#runs.positionAt(place) < this.#holdings.blocks[holding]!;
  }

  #endpoint(slot: number): Endpoint {
    const endpoint = this.#endpoints[slot];
    assert(endpoint !== undefined, "the slot belongs to an endpoint");
    return endpoint;
  }
}
