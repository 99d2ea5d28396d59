import { isRecord, type JsonRecord } from "#trace/import/json-record.ts";

/** What one JSON object of an answer holds: a chunk of a stream or a whole answer. */
export interface AnswerPart {
  /** It brings text, reasoning or a tool call that is not empty. */
  readonly hasContent: boolean;
  readonly finishReason: string | undefined;
  readonly isError: boolean;
  /** Of an error; may quote the request. */
  readonly errorMessage: string | undefined;
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
  readonly cachedTokens: number | undefined;
}

/** Reads a chunk or an answer of /v1/completions or /v1/chat/completions; undefined when it is no JSON object. */
export function parseAnswer(json: string): AnswerPart | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const choices: readonly unknown[] = Array.isArray(value["choices"]) ? value["choices"] : [];
  const records = choices.filter(isRecord);
  const usage = record(value["usage"]);
  const message = record(value["error"])?.["message"];
  return {
    hasContent: records.some(hasContent),
    finishReason: records.map((choice) => choice["finish_reason"]).find((reason) => typeof reason === "string"),
    isError: value["error"] !== undefined && value["error"] !== null,
    errorMessage: typeof message === "string" ? message : undefined,
    promptTokens: count(usage, "prompt_tokens"),
    completionTokens: count(usage, "completion_tokens"),
    cachedTokens: count(record(usage?.["prompt_tokens_details"]), "cached_tokens"),
  };
}

function hasContent(choice: JsonRecord): boolean {
  const message = record(choice["delta"]) ?? record(choice["message"]) ?? {};
  const texts = [choice["text"], message["content"], message["reasoning_content"], message["reasoning"]];
  const calls = message["tool_calls"];
  return texts.some((text) => typeof text === "string" && text !== "") || (Array.isArray(calls) && calls.length > 0);
}

function record(value: unknown): JsonRecord | undefined {
  return isRecord(value) ? value : undefined;
}

function count(from: JsonRecord | undefined, key: string): number | undefined {
  const value = from?.[key];
  return typeof value === "number" && value >= 0 ? value : undefined;
}
