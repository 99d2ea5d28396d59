import type { Random } from "#core/base/random.ts";

/** Shortest answer that ends by itself, in tokens. */
export const NATURAL_TOKENS_MIN = 16;

/**
 * Tokens after which an answer ends by itself: 16 + 4 (mean - 16) u v for two uniform draws u and v, whose product has
 * mean 1/4. Long-tailed up to four times the mean, the same for the same draws on every machine.
 */
export function naturalLength(random: Random, meanTokens: number): number {
  const spread = Math.max(0, meanTokens - NATURAL_TOKENS_MIN);
  return NATURAL_TOKENS_MIN + Math.round(4 * spread * random.next() * random.next());
}
