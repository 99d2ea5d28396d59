import type { Micros } from "../units.ts";

/** Tenants whose state is kept; the longest unused one is forgotten. */
const TENANTS_MAX = 10_000;

/** State by tenant, made when a tenant is first seen. */
export class BoundedTenants<T> {
  readonly #byTenant = new Map<string, T>();
  readonly #create: (at: Micros) => T;
  /** Tenants forgotten for want of room. */
  forgotten = 0;

  constructor(create: (at: Micros) => T) {
    this.#create = create;
  }

  /** The tenant's state, or undefined where it has none; looking changes nothing. */
  peek(tenant: string): T | undefined {
    return this.#byTenant.get(tenant);
  }

  /** Those that are kept, the longest unused one first. */
  entries(): Iterable<readonly [tenant: string, state: T]> {
    return this.#byTenant;
  }

  /** The tenant's state, which counts as used now. */
  of(tenant: string, at: Micros): T {
    const known = this.#byTenant.get(tenant);
    const state = known ?? this.#create(at);
    if (known !== undefined) this.#byTenant.delete(tenant);
    else if (this.#byTenant.size === TENANTS_MAX) {
      const oldest = this.#byTenant.keys().next();
      if (oldest.done !== true) this.#byTenant.delete(oldest.value);
      this.forgotten++;
    }
    this.#byTenant.set(tenant, state);
    return state;
  }
}
