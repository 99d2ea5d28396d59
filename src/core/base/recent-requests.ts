import { RequestTable } from "./request-table.ts";

interface Entry<V> {
  readonly id: string;
  readonly value: V;
  older: Entry<V> | undefined;
  newer: Entry<V> | undefined;
}

/**
 * Values by request id, for bounded tables through which every request passes: beyond `entriesMax` the one that was set
 * longest ago leaves. As RecentMap, but over a RequestTable, whose comment has why: followed in a Map, each request came
 * into the old generation, and a request of 2 KB took 0.45 KB of it in place of 0.15, and 1.4 us more of collections.
 *
 * An entry that leaves has no neighbours any more, since what is old and dead would keep those after it.
 */
export class RecentRequests<V> {
  readonly #entries = new RequestTable<Entry<V>>();
  readonly #entriesMax: number;
  #oldest: Entry<V> | undefined = undefined;
  #newest: Entry<V> | undefined = undefined;

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(id: string): V | undefined {
    return this.#entries.get(id)?.value;
  }

  /** Makes the entry the most recent. */
  set(id: string, value: V): void {
    this.delete(id);
    const entry: Entry<V> = { id, value, older: this.#newest, newer: undefined };
    if (this.#newest === undefined) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
    this.#entries.set(id, entry);
    if (this.#entries.size > this.#entriesMax) this.delete(this.#oldest!.id);
  }

  /** Nothing where there is none. */
  delete(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    const { older, newer } = entry;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    entry.older = undefined;
    entry.newer = undefined;
  }

  clear(): void {
    while (this.#oldest !== undefined) this.delete(this.#oldest.id);
  }
}
