import { blockKey } from "./block-key.ts";

/** Copies of blocks beyond the first of each. */
export class BlockCopies {
  readonly #counts = new Map<number, number>();

  add(hashes: Int32Array, block: number): void {
    const key = blockKey(hashes, block);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** Takes one away; false where the block has none. */
  take(hashes: Int32Array, block: number): boolean {
    if (this.#counts.size === 0) return false;
    const key = blockKey(hashes, block);
    const count = this.#counts.get(key);
    if (count === undefined) return false;
    if (count === 1) this.#counts.delete(key);
    else this.#counts.set(key, count - 1);
    return true;
  }

  clear(): void {
    this.#counts.clear();
  }
}
