import { assert } from "../base/assert.ts";

/** Requests in flight by name. Memory is that of the names that have any. */
export class InFlightCount {
  readonly #byName = new Map<string, number>();

  of(name: string): number {
    return this.#byName.get(name) ?? 0;
  }

  /** Those that have any. */
  entries(): Iterable<readonly [name: string, count: number]> {
    return this.#byName;
  }

  add(name: string): void {
    this.#byName.set(name, this.of(name) + 1);
  }

  remove(name: string): void {
    const count = this.of(name);
    assert(count > 0, "a request that ends was admitted");
    if (count === 1) this.#byName.delete(name);
    else this.#byName.set(name, count - 1);
  }
}
