import type { Micros } from "../base/units.ts";

/** Tenants whose state is kept; the longest unused one is forgotten. */
const TENANTS_MAX = 10_000;

interface Kept<T> {
  readonly tenant: string;
  readonly state: T;
  older: Kept<T> | undefined;
  newer: Kept<T> | undefined;
}

/** State by tenant, made when a tenant is first seen. What it costs does not depend on how many there are. */
export class BoundedTenants<T> {
  /** In no order: one that keeps a Map's order by taking out and putting in walks what was taken out, time and again. */
  readonly #byTenant = new Map<string, Kept<T>>();
  readonly #create: (at: Micros) => T;
  #oldest: Kept<T> | undefined;
  #newest: Kept<T> | undefined;
  /** Tenants forgotten for want of room. */
  forgotten = 0;

  constructor(create: (at: Micros) => T) {
    this.#create = create;
  }

  /** The tenant's state, or undefined where it has none; looking changes nothing. */
  peek(tenant: string): T | undefined {
    return this.#byTenant.get(tenant)?.state;
  }

  /** Those that are kept, the longest unused one first. */
  *entries(): Iterable<readonly [tenant: string, state: T]> {
    for (let kept = this.#oldest; kept !== undefined; kept = kept.newer) yield [kept.tenant, kept.state];
  }

  /** The tenant's state, which counts as used now. */
  of(tenant: string, at: Micros): T {
    const known = this.#byTenant.get(tenant);
    if (known !== undefined) {
      if (known !== this.#newest) {
        this.#takeOut(known);
        this.#append(known);
      }
      return known.state;
    }
    if (this.#byTenant.size === TENANTS_MAX && this.#oldest !== undefined) {
      this.#byTenant.delete(this.#oldest.tenant);
      this.#takeOut(this.#oldest);
      this.forgotten++;
    }
    const kept: Kept<T> = { tenant, state: this.#create(at), older: undefined, newer: undefined };
    this.#byTenant.set(tenant, kept);
    this.#append(kept);
    return kept.state;
  }

  #takeOut({ older, newer }: Kept<T>): void {
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
  }

  #append(kept: Kept<T>): void {
    kept.older = this.#newest;
    kept.newer = undefined;
    if (this.#newest === undefined) this.#oldest = kept;
    else this.#newest.newer = kept;
    this.#newest = kept;
  }
}
