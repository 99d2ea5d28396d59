import { type EngineConfig, roomTokens } from "./config.ts";

/**
 * Tokens of an answer that an engine has room for, up to those that are wanted, or why it refuses the request at once.
 */
export function answerRoom(
  config: EngineConfig,
  promptTokens: number,
  outputTokens: number,
): number | "too-long" | "never-fits" {
  const { modelTokensMax, chunkedPrefill, batchTokensMax, semantics } = config;
  const wanted = Math.min(Math.max(1, outputTokens), modelTokensMax - promptTokens);
  if (wanted < 1) return "too-long";
  const heldMax = roomTokens(config);
  const kept = semantics.mustFit === "prompt" ? promptTokens : promptTokens + wanted - 1;
  if (kept > heldMax) return "never-fits";
  // One that keeps its tokens can never be admitted again with more of them; what begins anew, the scheduler cuts.
  const target = semantics.preempted === "restarts" ? wanted : Math.min(wanted, heldMax - promptTokens + 1);
  const computed = promptTokens + target - 1;
  return !chunkedPrefill && computed > batchTokensMax ? "never-fits" : target;
}
