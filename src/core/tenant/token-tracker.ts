import { RecentMap } from "../base/recent-map.ts";
import type { Micros } from "../base/units.ts";
import { TokenTotals } from "./token-totals.ts";

/** Tenants remembered; the one that was longest silent goes first. */
const TENANTS_MAX = 16_384;

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
  readonly #totals = new TokenTotals();
  readonly #tenants = new RecentMap<string, TenantWindow>(TENANTS_MAX, ({ total }) => this.#totals.move(total, 0));
  /** Tenants by the buckets that they have tokens in, or had. */
  readonly #byBucket = new Map<number, string[]>();
  /** Names in it, those of tenants that are forgotten too, and how many are too many of these. */
  #entered = 0;
  #enteredMax = TENANTS_MAX;
  /** Buckets before it are gone from all windows. */
  #cutoff = -Infinity;

  constructor(options: TokenTrackerOptions) {
    this.#options = options;
  }

  weigh(inputTokens: number, outputTokens: number): number {
    const { inputWeight, outputWeight } = this.#options;
    return Math.max(0, inputTokens) * inputWeight + Math.max(0, outputTokens) * outputWeight;
  }

  /** Adds weighted tokens; a negative amount corrects an earlier charge and never takes a bucket below 0. */
  add(tenant: string, at: Micros, weighted: number): void {
    this.#expire(at);
    const window = this.#tenants.get(tenant) ?? { buckets: new Map<number, number>(), total: 0 };
    this.#tenants.set(tenant, window);
    const before = window.total;
    this.#prune(window, at);
    const bucket = Math.floor(at / this.#options.bucketMicros);
    const held = window.buckets.get(bucket);
    const holds = Math.max(0, (held ?? 0) + weighted);
    window.buckets.set(bucket, holds);
    window.total += holds - (held ?? 0);
    if (window.buckets.size > BUCKETS_MAX) drop(window, window.buckets.keys().next().value!);
    if (held === undefined) this.#enter(tenant, bucket);
    this.#totals.move(before, window.total);
  }

  /** Weighted tokens of the tenant within the window; reading changes nothing. */
  total(tenant: string, at: Micros): number {
    const window = this.#tenants.get(tenant);
    return window === undefined ? 0 : this.#current(window, at);
  }

  /** Least and most over tenants with any tokens in the window; undefined when there is none. */
  span(at: Micros): TokenTotals["span"] {
    this.#expire(at);
    return this.#totals.span;
  }

  #enter(tenant: string, bucket: number): void {
    const tenants = this.#byBucket.get(bucket);
    if (tenants === undefined) this.#byBucket.set(bucket, [tenant]);
    else tenants.push(tenant);
    if (++this.#entered > this.#enteredMax) this.#enterAll();
  }

  #enterAll(): void {
    this.#byBucket.clear();
    this.#entered = 0;
    this.#enteredMax = Infinity;
    for (const [tenant, { buckets }] of this.#tenants.entries()) {
      for (const bucket of buckets.keys()) this.#enter(tenant, bucket);
    }
    this.#enteredMax = TENANTS_MAX + 2 * this.#entered;
  }

  /** Takes out what is older than the window, of those tenants that have any. */
  #expire(at: Micros): void {
    const cutoff = this.#cutoffOf(at);
    if (cutoff <= this.#cutoff) return;
    this.#cutoff = cutoff;
    for (const [bucket, tenants] of this.#byBucket) {
      if (bucket >= cutoff) continue;
      this.#byBucket.delete(bucket);
      this.#entered -= tenants.length;
      for (const tenant of tenants) {
        const window = this.#tenants.get(tenant);
        if (window === undefined) continue;
        const before = window.total;
        this.#prune(window, at);
        this.#totals.move(before, window.total);
      }
    }
  }

  #cutoffOf(at: Micros): number {
    return Math.floor((at - this.#options.windowMicros) / this.#options.bucketMicros);
  }

  #current(window: TenantWindow, at: Micros): number {
    const cutoff = this.#cutoffOf(at);
    let total = window.total;
    for (const [bucket, weighted] of window.buckets) {
      if (bucket >= cutoff) break;
      total -= weighted;
    }
    return total;
  }

  #prune(window: TenantWindow, at: Micros): void {
    const cutoff = this.#cutoffOf(at);
    for (const bucket of window.buckets.keys()) {
      if (bucket >= cutoff) return;
      drop(window, bucket);
    }
  }
}

function drop(window: TenantWindow, bucket: number): void {
  window.total -= window.buckets.get(bucket)!;
  window.buckets.delete(bucket);
}
