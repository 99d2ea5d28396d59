import { RecentMap } from "../recent-map.ts";
import type { Micros } from "../units.ts";

/** Tenants remembered; the one that was longest silent goes first. */
const TENANTS_MAX = 65_536;

/** Buckets of a tenant's window. */
const BUCKETS_MAX = 1024;

interface TenantWindow {
  readonly buckets: Map<number, number>;
  total: number;
}

export interface TokenTrackerOptions {
  readonly windowMicros: Micros;
  /** Grain of the window; tokens of one bucket leave it together. */
  readonly bucketMicros: Micros;
  readonly inputWeight: number;
  readonly outputWeight: number;
}

/**
 * Weighted tokens that each tenant was served within a sliding window (Virtual Token Counter, Sheng et al.).
 *
 *     weighted = inputWeight * input + outputWeight * output, negatives count as 0
 */
export class TokenTracker {
  readonly #options: TokenTrackerOptions;
  readonly #tenants = new RecentMap<string, TenantWindow>(TENANTS_MAX);

  constructor(options: TokenTrackerOptions) {
    this.#options = options;
  }

  weigh(inputTokens: number, outputTokens: number): number {
    const { inputWeight, outputWeight } = this.#options;
    return Math.max(0, inputTokens) * inputWeight + Math.max(0, outputTokens) * outputWeight;
  }

  /** Adds weighted tokens; a negative amount corrects an earlier charge and never takes a bucket below 0. */
  add(tenant: string, at: Micros, weighted: number): void {
    let window = this.#tenants.get(tenant);
    if (window === undefined) window = { buckets: new Map(), total: 0 };
    this.#tenants.set(tenant, window);
    this.#prune(window, at);
    const bucket = Math.floor(at / this.#options.bucketMicros);
    const before = window.buckets.get(bucket) ?? 0;
    const after = Math.max(0, before + weighted);
    window.buckets.set(bucket, after);
    window.total += after - before;
    if (window.buckets.size > BUCKETS_MAX) this.#drop(window, window.buckets.keys().next().value!);
  }

  /** Weighted tokens of the tenant within the window; reading changes nothing. */
  total(tenant: string, at: Micros): number {
    const window = this.#tenants.get(tenant);
    return window === undefined ? 0 : this.#current(window, at);
  }

  /** Least and most over tenants with any tokens in the window; undefined when there is none. */
  span(at: Micros): { readonly min: number; readonly max: number } | undefined {
    let min = Infinity;
    let max = 0;
    for (const window of this.#tenants.values()) {
      const total = this.#current(window, at);
      if (total <= 0) continue;
      min = Math.min(min, total);
      max = Math.max(max, total);
    }
    return max === 0 ? undefined : { min, max };
  }

  #cutoff(at: Micros): number {
    return Math.floor((at - this.#options.windowMicros) / this.#options.bucketMicros);
  }

  #current(window: TenantWindow, at: Micros): number {
    const cutoff = this.#cutoff(at);
    let total = window.total;
    for (const [bucket, weighted] of window.buckets) {
      if (bucket >= cutoff) break;
      total -= weighted;
    }
    return total;
  }

  #prune(window: TenantWindow, at: Micros): void {
    const cutoff = this.#cutoff(at);
    for (const bucket of window.buckets.keys()) {
      if (bucket >= cutoff) return;
      this.#drop(window, bucket);
    }
  }

  #drop(window: TenantWindow, bucket: number): void {
    window.total -= window.buckets.get(bucket)!;
    window.buckets.delete(bucket);
  }
}
