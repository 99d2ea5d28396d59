import type { EmulatedSequence } from "../generation/sequence.ts";
import type { AnswerContext } from "./answer-context.ts";

/** Tokens of one client request, over all its sequences. */
export interface UsageTotals {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Of the last prompt: vLLM does not add them up. */
  readonly cachedTokens: number;
  /** Prompt tokens that the request newly put into the prefix cache, of the last prompt. */
  readonly createdCacheTokens: number;
}

export function totalUsage(sequences: readonly EmulatedSequence[], blockTokens: number): UsageTotals {
  let promptTokens = 0;
  let completionTokens = 0;
  let cachedTokens = 0;
  let createdCacheTokens = 0;
  let previous: Int32Array | undefined;
  for (const { prompt, produced, cachedTokens: cached } of sequences) {
    completionTokens += produced;
    if (prompt === previous) continue;
    previous = prompt;
    promptTokens += prompt.length;
    cachedTokens = cached;
    createdCacheTokens = Math.max(0, Math.floor(prompt.length / blockTokens) * blockTokens - cached);
  }
  return { promptTokens, completionTokens, cachedTokens, createdCacheTokens };
}

/** The `usage` of a whole answer. Chat counts created cache tokens, completions write null. */
export function usageJson(kind: "chat" | "completion", totals: UsageTotals, details: boolean): string {
  const created = kind === "chat" ? String(totals.createdCacheTokens) : "null";
  const cached = `"cached_tokens":${totals.cachedTokens},"created_cache_tokens":${created}`;
  const prompt = details ? `{${cached},"multimodal_tokens":null}` : "null";
  return `{${counts(totals)},"prompt_tokens_details":${prompt},"completion_tokens_details":null}`;
}

/** The `usage` of a stream's last event. */
export function finalUsageJson(kind: "chat" | "completion", totals: UsageTotals, details: boolean): string {
  if (!details) return `{${counts(totals)}}`;
  const created = kind === "chat" ? `,"created_cache_tokens":${totals.createdCacheTokens}` : "";
  return `{${counts(totals)},"prompt_tokens_details":{"cached_tokens":${totals.cachedTokens}${created}}}`;
}

/** The `usage` inside an event of a running stream, with the comma before it; "" unless the client asked for it. */
export function runningUsage(kind: "chat" | "completion", context: AnswerContext, tokens: UsageTotals): string {
  if (!context.continuousUsage) return "";
  const rest = kind === "chat" ? ',"completion_tokens_details":null' : "";
  return `,"usage":{${counts(tokens)}${rest}}`;
}

function counts({ promptTokens, completionTokens }: UsageTotals): string {
  const total = promptTokens + completionTokens;
  return `"prompt_tokens":${promptTokens},"total_tokens":${total},"completion_tokens":${completionTokens}`;
}
