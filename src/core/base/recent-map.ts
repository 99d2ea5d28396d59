/**
 * A map that forgets: beyond `entriesMax` the entries that were set longest ago leave, an eighth of the map at a time,
 * since taking a Map's first key over and over walks the holes that the earlier ones left.
 */
export class RecentMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #entriesMax: number;
  readonly #forgotten: ((value: V, key: K) => void) | undefined;

  /** Notified of entries that leave for want of room. */
  constructor(entriesMax: number, forgotten?: (value: V, key: K) => void) {
    this.#entriesMax = entriesMax;
    this.#forgotten = forgotten;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Makes the entry the most recent. */
  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#entriesMax) this.#forget();
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Least recent first. */
  keys(): IterableIterator<K> {
    return this.#entries.keys();
  }

  /** Least recent first. */
  entries(): IterableIterator<[K, V]> {
    return this.#entries.entries();
  }

  /** Least recent first. */
  values(): IterableIterator<V> {
    return this.#entries.values();
  }

  #forget(): void {
    let excess = this.#entries.size - this.#entriesMax + (this.#entriesMax >> 3);
    for (const [key, value] of this.#entries) {
      if (excess-- <= 0) return;
      this.#entries.delete(key);
      this.#forgotten?.(value, key);
    }
  }
}
