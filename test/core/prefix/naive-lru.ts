import type { BlockChain } from "#core/prompt/block-chain.ts";

interface Block {
  /** Index in the chain. */
  readonly depth: number;
  readonly addedBy: number;
  touchedBy: number;
}

interface Cache {
  capacity: number;
  readonly blocks: Map<string, Block>;
}

/** The definition that the index is held to, block by block: oldest first, deepest first within one insertion. */
export class NaiveLru {
  readonly #caches: (Cache | undefined)[] = [];
  #stamp = 0;

  join(capacity: number): number {
    const free = this.#caches.indexOf(undefined);
    const slot = free === -1 ? this.#caches.length : free;
    this.#caches[slot] = { capacity, blocks: new Map() };
    return slot;
  }

  leave(slot: number): void {
    this.#caches[slot] = undefined;
  }

  clear(slot: number): void {
    this.#cache(slot).blocks.clear();
  }

  resize(slot: number, capacity: number): void {
    this.#cache(slot).capacity = capacity;
    this.#evict(slot);
  }

  size(slot: number): number {
    return this.#cache(slot).blocks.size;
  }

  match(chain: BlockChain): number[] {
    return this.#caches.map((cache) => {
      let held = 0;
      while (held < chain.length && cache?.blocks.has(keyOf(chain.hashes, held)) === true) held++;
      return held;
    });
  }

  insert(slot: number, chain: BlockChain): number {
    const stamp = ++this.#stamp;
    const { blocks } = this.#cache(slot);
    for (let depth = 0; depth < chain.length; depth++) {
      const key = keyOf(chain.hashes, depth);
      const block = blocks.get(key);
      if (block === undefined) blocks.set(key, { depth, addedBy: stamp, touchedBy: stamp });
      else block.touchedBy = stamp;
    }
    this.#evict(slot);
    return stamp;
  }

  withdraw(slot: number, stamp: number): void {
    const blocks = this.#caches[slot]?.blocks;
    if (blocks === undefined) return;
    for (const [key, block] of blocks) {
      if (block.addedBy === stamp && block.touchedBy === stamp) blocks.delete(key);
    }
  }

  /** Forgets what was last touched by this insertion or an earlier one. */
  expire(slot: number, stamp: number): void {
    const { blocks } = this.#cache(slot);
    for (const [key, block] of blocks) if (block.touchedBy <= stamp) blocks.delete(key);
  }

  #evict(slot: number): void {
    const { blocks, capacity } = this.#cache(slot);
    if (blocks.size <= capacity) return;
    const byAge = [...blocks].sort(([, a], [, b]) => a.touchedBy - b.touchedBy || b.depth - a.depth);
    for (const [key] of byAge.slice(0, blocks.size - capacity)) blocks.delete(key);
  }

  #cache(slot: number): Cache {
    const cache = this.#caches[slot];
    if (cache === undefined) throw new Error(`nobody has slot ${slot}`);
    return cache;
  }
}

export function keyOf(hashes: Int32Array, block: number): string {
  return `${hashes[2 * block]},${hashes[2 * block + 1]}`;
}
