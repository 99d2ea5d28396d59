import type { RouteRequest } from "../request/request.ts";

/**
 * Why one endpoint does both, computes the prompt and answers:
 * - undivided: such requests cannot be shared, or its engine has to compute the whole prompt itself
 * - several-sequences: it asks for more than one answer
 * - short: the prompt is shorter than what is shared
 * - cached: too little of the prompt is missing from the cache of the endpoint that answers
 * - continued: it goes on behind a part of its answer
 * - transfer-failed: its blocks were lost between two endpoints before
 * - no-prefill-endpoint: none may compute its prompt
 */
export const COLOCATE_REASONS = [
  "undivided",
  "several-sequences",
  "short",
  "cached",
  "continued",
  "transfer-failed",
  "no-prefill-endpoint",
] as const;
export type ColocateReason = (typeof COLOCATE_REASONS)[number];

/** Where a profile leaves colocateBelowTokens out; as Cognitora's colocate_below_tokens. */
export const COLOCATE_BELOW_TOKENS = 256;

/** What of a request's past decides. */
export interface StagePast {
  /** Times that it asked for an endpoint behind a part of its answer. */
  readonly continued: boolean;
  readonly transferFailed: boolean;
}

/**
 * Whether the endpoint that answers computes the prompt as well, of which it is believed to hold `hitTokens`; undefined
 * where another one is to compute it. As llm-d's decider by prefixes and Cognitora's `colocate_below_tokens`: what counts
 * are the tokens that are not cached, and a prompt exactly at the bound is shared.
 */
export function colocateReason(
  { colocateBelowTokens, promptTokensMin }: { readonly colocateBelowTokens: number; readonly promptTokensMin: number },
  { promptTokens, sequences, cacheRead, undivided }: RouteRequest,
  hitTokens: number,
  { continued, transferFailed }: StagePast,
): ColocateReason | undefined {
  if (undivided === true || cacheRead === false) return "undivided";
  if (sequences > 1) return "several-sequences";
  if (continued) return "continued";
  if (transferFailed) return "transfer-failed";
  if (promptTokens < promptTokensMin || promptTokens < colocateBelowTokens) return "short";
  return promptTokens - hitTokens < colocateBelowTokens ? "cached" : undefined;
}
