import { RecentMap } from "../base/recent-map.ts";

/** Tenants remembered; the one that was served longest ago goes first. */
const TENANTS_MAX = 16_384;

export interface ServiceShares {
  readonly inputWeight: number;
  readonly outputWeight: number;
  /** What tenants are to get relative to one another; 1 for those not named. */
  readonly shares: Readonly<Record<string, number>>;
}

/**
 * What each tenant was served, for giving the next turn to whoever had least (Virtual Token Counter, Sheng et al.,
 * "Fairness in Serving Large Language Models").
 *
 *     counter += (inputWeight * computed prompt tokens + outputWeight * output tokens) / share
 *
 * A tenant that comes back after a pause is lifted to the least of those that wait, so that a pause saves nothing up.
 */
export class ServiceCounters {
  #options: ServiceShares;
  readonly #served = new RecentMap<string, number>(TENANTS_MAX);

  constructor(options: ServiceShares) {
    this.#options = options;
  }

  configure(options: ServiceShares): void {
    this.#options = options;
  }

  of(tenant: string): number {
    return this.#served.get(tenant) ?? 0;
  }

  shareOf(tenant: string): number {
    const { shares } = this.#options;
    return Object.hasOwn(shares, tenant) ? shares[tenant]! : 1;
  }

  served(tenant: string, promptTokens: number, outputTokens: number): void {
    const { inputWeight, outputWeight } = this.#options;
    const tokens = inputWeight * promptTokens + outputWeight * outputTokens;
    this.#served.set(tenant, this.of(tenant) + tokens / this.shareOf(tenant));
  }

  lift(tenant: string, least: number): void {
    if (least > this.of(tenant)) this.#served.set(tenant, least);
  }
}
