import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Insertion, PrefixIndex } from "#core/prefix/prefix-index.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineSink } from "#engine/sink.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";

/**
 * What engines' caches hold, as an index: the upper bound of what any index can know. With a delay it is a copy of all
 * caches, renewed at the first decision after each delay (BLIS's cache signal); without one the caches themselves.
 * Decisions change nothing in it.
 */
export class CacheCopies implements PrefixIndex {
  readonly #delayMicros: Micros;
  readonly #fleet: EngineFleet;
  /** By engine; a slot is an engine's number. */
  readonly #caches: CacheCopy[] = [];
  #joined = 0;
  #copiedAt: Micros = 0;
  #at: Micros = 0;

  constructor(delayMicros: Micros, fleet: EngineFleet) {
    this.#delayMicros = delayMicros;
    this.#fleet = fleet;
  }

  /** What notifies the copy of an engine's cache of its changes; nothing where the cache itself is read. */
  sinkOf(engine: number, config: EngineConfig): Partial<EngineSink> {
    if (this.#delayMicros === 0) return {};
    const cache = new CacheCopy(config.semantics.duplicates === "coexist");
    this.#caches[engine] = cache;
    return {
      blocksStored: (_at, request, firstBlock, count) => cache.stored(request.hashes, firstBlock, count),
      blockRemoved: (_at, low, high) => cache.removed(low, high),
    };
  }

  join(endpoint: EndpointId, _capacityBlocks: number): number {
    const slot = this.#fleet.numberOf(endpoint);
    this.#joined = Math.max(this.#joined, slot + 1);
    return slot;
  }

  advance(at: Micros): void {
    this.#at = at;
    if (this.#delayMicros === 0 || at - this.#copiedAt < this.#delayMicros) return;
    this.#copiedAt = at;
    for (const cache of this.#caches) cache.renew();
  }

  match(chain: BlockChain, hits: Int32Array): void {
    for (let slot = 0; slot < this.#joined; slot++) {
      hits[slot] = this.held(this.#at, slot, chain);
    }
  }

  /** Leading blocks that an engine holds, or held when it was copied. */
  held(at: Micros, engine: number, chain: BlockChain): number {
    this.advance(at);
    if (this.#delayMicros === 0) return this.#fleet.cachedPrefixBlocks(at, engine, chain.hashes);
    return this.#caches[engine]?.leading(chain) ?? 0;
  }

  insert(slot: number, _chain: BlockChain): Insertion {
    return { slot };
  }

  size(slot: number): number {
    return this.#caches[slot]?.size ?? 0;
  }

  withdraw(): void {}
  leave(): void {}
  resize(): void {}

  /** An engine began anew. */
  clear(slot: number): void {
    this.#caches[slot]?.forget();
  }
}

/** One cache's content when it was last copied, and what has changed since. */
class CacheCopy {
  /** Key of a block's content → blocks that hold it. */
  readonly #blocks = new Map<number, number>();
  readonly #counted: boolean;
  #changes: number[] = [];
  /** 1 for a block that was stored, -1 for one removed; in step with `#changes`. */
  #signs: number[] = [];

  /** `counted`: equal blocks exist side by side, and each is removed for itself. */
  constructor(counted: boolean) {
    this.#counted = counted;
  }

  get size(): number {
    return this.#blocks.size;
  }

  stored(hashes: Int32Array, firstBlock: number, count: number): void {
    for (let i = firstBlock; i < firstBlock + count; i++) this.#note(hashes[2 * i]!, hashes[2 * i + 1]!, 1);
  }

  removed(low: number, high: number): void {
    this.#note(low, high, -1);
  }

  renew(): void {
    for (let i = 0; i < this.#changes.length; i++) {
      const block = this.#changes[i]!;
      const left = this.#counted ? (this.#blocks.get(block) ?? 0) + this.#signs[i]! : this.#signs[i]!;
      if (left > 0) this.#blocks.set(block, left);
      else this.#blocks.delete(block);
    }
    this.#changes = [];
    this.#signs = [];
  }

  forget(): void {
    this.#blocks.clear();
    this.#changes = [];
    this.#signs = [];
  }

  leading({ hashes, length }: BlockChain): number {
    let held = 0;
    while (held < length && this.#blocks.has(keyOf(hashes[2 * held]!, hashes[2 * held + 1]!))) held++;
    return held;
  }

  #note(low: number, high: number, sign: number): void {
    this.#changes.push(keyOf(low, high));
    this.#signs.push(sign);
  }
}

/** 53 bits of the hash: among n blocks two are taken for one with a chance of n^2 / 2^54. */
function keyOf(low: number, high: number): number {
  return (high & 0x1f_ffff) * 0x1_0000_0000 + (low >>> 0);
}
