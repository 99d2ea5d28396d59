import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import type { Hold } from "#engine/block-fetch.ts";

interface Held {
  readonly hold: Hold;
  expiresAtMs: number;
}

/**
 * Blocks that are held for other engines, each for a lease that whoever will fetch them renews (NIXL connector:
 * `kv_lease_duration`). As many at most as the engine's cache has room for.
 */
export class HeldBlocks {
  readonly #leaseMs: number;
  readonly #release: (hold: Hold) => void;
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;
  /** Fetched, or given back unread; and those whose lease ran out. */
  taken = 0;
  expired = 0;

  constructor(leaseSeconds: number, release: (hold: Hold) => void) {
    this.#leaseMs = leaseSeconds * MILLIS_PER_SECOND;
    this.#release = release;
  }

  get size(): number {
    return this.#held.size;
  }

  add(requestId: string, hold: Hold): void {
    this.#held.set(requestId, { hold, expiresAtMs: performance.now() + this.#leaseMs });
    this.#arm();
  }

  /** Renews the lease; false where nothing is held, for it ran out or never was. */
  renew(requestId: string): boolean {
    const held = this.#held.get(requestId);
    if (held === undefined) return false;
    held.expiresAtMs = performance.now() + this.#leaseMs;
    return true;
  }

  /** They were fetched, or will not be. */
  take(requestId: string): boolean {
    const held = this.#held.get(requestId);
    if (held === undefined) return false;
    this.#held.delete(requestId);
    this.taken++;
    this.#release(held.hold);
    return true;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#held.clear();
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#held.size === 0) return;
    let first = Infinity;
    for (const { expiresAtMs } of this.#held.values()) first = Math.min(first, expiresAtMs);
    this.#timer = setTimeout(() => this.#expire(), Math.max(1, first - performance.now()));
    this.#timer.unref();
  }

  #expire(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (const [requestId, { hold, expiresAtMs }] of this.#held) {
      if (expiresAtMs > now) continue;
      this.#held.delete(requestId);
      this.expired++;
      this.#release(hold);
    }
    this.#arm();
  }
}
