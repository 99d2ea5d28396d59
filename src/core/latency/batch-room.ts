import type { Endpoint, Load } from "../endpoint/endpoint.ts";

/** Share of the cache above which prompts that wait there wait for room in it. */
const FULL_SHARE = 0.85;
/**
 * Below it, gauges show that there is room, whatever contexts that were added up say: what prompts have in common lies
 * there once.
 */
const ROOMY_SHARE = 0.5;

/**
 * Requests that an endpoint runs at once, at least 1: as many as it was seen to run while others waited for a place or for
 * room in its cache, else as many as it may (max_num_seqs) or its cache has room for at `tokensEach`; Infinity where
 * nobody knows. `load` is a fresh scrape, if there is one.
 */
export function batchRoom(
  endpoint: Pick<Endpoint, "concurrencyMax" | "kvCapacityTokens"> | undefined,
  load: Load | undefined,
  tokensEach: number,
): number {
  const { concurrencyMax = Infinity, kvCapacityTokens = Infinity } = endpoint ?? {};
  const { running = 0, waiting = 0, kvUtilization } = load ?? {};
  if (running > 0 && waiting > 0 && (running >= concurrencyMax || (kvUtilization ?? 0) >= FULL_SHARE)) return running;
  const roomy = kvUtilization !== undefined && kvUtilization < ROOMY_SHARE;
  return Math.max(1, Math.min(concurrencyMax, roomy ? Infinity : kvCapacityTokens / tokensEach));
}

/**
 * Pairs of a new token of a prompt and one before it, which attention computes: newTokens * (promptTokens - newTokens /
 * 2).
 */
export function attentionPairs(promptTokens: number, newTokens: number): number {
  return newTokens * (promptTokens - newTokens / 2);
}
