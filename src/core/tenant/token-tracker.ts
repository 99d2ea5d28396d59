import { RecentMap } from "../recent-map.ts";
import type { Micros } from "../units.ts";

/** Tenants remembered; the one that was longest silent goes first. */
const TENANTS_MAX = 16_384;

/** Buckets of a tenant's window. */
const BUCKETS_MAX = 1024;

interface TenantWindow {
  readonly buckets: Map<number, number>;
  total: number;
}

interface Span {
  readonly min: number;
  readonly max: number;
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
  /** The span as of bucket `#spanBucket`; undefined has to be taken anew. */
  #span: Span | "none" | undefined = undefined;
  #spanBucket = -1;

  constructor(options: TokenTrackerOptions) {
    this.#options = options;
  }

  weigh(inputTokens: number, outputTokens: number): number {
    const { inputWeight, outputWeight } = this.#options;
    return Math.max(0, inputTokens) * inputWeight + Math.max(0, outputTokens) * outputWeight;
  }

  /** Adds weighted tokens; a negative amount corrects an earlier charge and never takes a bucket below 0. */
  add(tenant: string, at: Micros, weighted: number): void {
    const window = this.#tenants.get(tenant) ?? { buckets: new Map<number, number>(), total: 0 };
    this.#tenants.set(tenant, window);
    this.#prune(window, at);
    const before = window.total;
    const bucket = Math.floor(at / this.#options.bucketMicros);
    const held = window.buckets.get(bucket) ?? 0;
    const holds = Math.max(0, held + weighted);
    window.buckets.set(bucket, holds);
    window.total += holds - held;
    if (window.buckets.size > BUCKETS_MAX) this.#drop(window, window.buckets.keys().next().value!);
    this.#widen(before, window.total);
  }

  /** Weighted tokens of the tenant within the window; reading changes nothing. */
  total(tenant: string, at: Micros): number {
    const window = this.#tenants.get(tenant);
    return window === undefined ? 0 : this.#current(window, at);
  }

  /**
   * Least and most over tenants with any tokens in the window; undefined when there is none. Taken over all tenants once
   * per bucket of time, and kept up in between.
   */
  span(at: Micros): Span | undefined {
    const bucket = Math.floor(at / this.#options.bucketMicros);
    if (this.#span === undefined || this.#spanBucket !== bucket) {
      this.#span = this.#spanOfAll(at) ?? "none";
      this.#spanBucket = bucket;
    }
    return this.#span === "none" ? undefined : this.#span;
  }

  /** Keeps the span up to a tenant's new total, or gives it up where the tenant may have been at its edge. */
  #widen(before: number, after: number): void {
    if (this.#span === undefined) return;
    const { min, max } = this.#span === "none" ? { min: Infinity, max: 0 } : this.#span;
    const leavesMin = before > 0 && before <= min && (after > before || after <= 0);
    const leavesMax = before > 0 && before >= max && after < before;
    if (leavesMin || leavesMax) this.#span = undefined;
    else if (after > 0) this.#span = { min: Math.min(min, after), max: Math.max(max, after) };
  }

  #spanOfAll(at: Micros): Span | undefined {
    let min = Infinity;
    let max = 0;
    for (const window of this.#tenants.values()) {
      this.#prune(window, at);
      if (window.total <= 0) continue;
      min = Math.min(min, window.total);
      max = Math.max(max, window.total);
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
