import type { Micros } from "../base/units.ts";

/** What an engine pays for prompt tokens whose keys and values lie in its host's memory, and what for computing them. */
export interface HostMemoryPrice {
  /** Before the first token of a prompt is copied to the device. */
  readonly baseMicros: Micros;
  /** To copy one more; may be a fraction. */
  readonly tokenMicros: number;
  /** To compute one, above 0; may be a fraction. */
  readonly prefillTokenMicros: number;
}

/**
 * Of an 8-billion-parameter model with 128 KiB of keys and values a token: 19 GB/s between host and device, and 12,500
 * prompt tokens a second.
 */
export const HOST_MEMORY_PRICE: HostMemoryPrice = { baseMicros: 500, tokenMicros: 7, prefillTokenMicros: 80 };

/**
 * Prompt tokens whose computation is spared by copying so many, the copy's own time taken off at the price of computing:
 * n - (base + n * token) / prefill, a whole number in [0, n].
 */
export function sparedTokens(tokens: number, price: HostMemoryPrice): number {
  if (tokens === 0) return 0;
  const copied = price.baseMicros + tokens * price.tokenMicros;
  return Math.max(0, Math.floor(tokens - copied / price.prefillTokenMicros));
}
