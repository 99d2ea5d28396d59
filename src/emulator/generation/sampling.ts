import { badRequest } from "../http/api-error.ts";
import { readTransferRequest, type TransferRequest } from "../kv-transfer/transfer-request.ts";
import type { FieldReader } from "../http/field-reader.ts";

/** What a client asked of the generation, chat and completions alike. */
export interface Sampling {
  readonly n: number;
  readonly temperature: number;
  readonly topP: number;
  /** Undefined when the client set none. */
  readonly maxTokens: number | undefined;
  readonly minTokens: number;
  readonly ignoreEos: boolean;
  readonly stop: readonly string[];
  readonly stopTokenIds: readonly number[];
  readonly includeStop: boolean;
  /** Alternatives per prompt token; undefined when not asked for. */
  readonly promptLogprobs: number | undefined;
  readonly seed: number;
  readonly stream: StreamOptions | undefined;
  readonly returnTokenIds: boolean;
  /** Lower runs earlier. */
  readonly priority: number;
  readonly cacheSalt: string;
  /** Id that the client chose; "" when it chose none. */
  readonly requestId: string;
  /** Its blocks come from another engine, or go to one; undefined for neither. */
  readonly transfer: TransferRequest | undefined;
}

export interface StreamOptions {
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
}

/** Alternatives that vLLM gives per token at most, by default. */
export const LOGPROBS_MAX = 20;
/** Choices per request; vLLM's own limit. */
const CHOICES_MAX = 16_384;

/** Reads the common fields, then checks their ranges in vLLM's order. Throws ApiError 400. */
export function readSampling(fields: FieldReader, maxTokens: number | undefined): Sampling {
  const streaming = fields.boolean("stream") ?? false;
  const options = fields.object("stream_options");
  const usage = options?.boolean("include_usage") ?? false;
  const continuous = options?.boolean("continuous_usage_stats") ?? false;
  const sampling: Sampling = {
    n: fields.int("n") ?? 1,
    temperature: fields.float("temperature") ?? 1,
    topP: fields.float("top_p") ?? 1,
    maxTokens,
    minTokens: fields.int("min_tokens") ?? 0,
    ignoreEos: fields.boolean("ignore_eos") ?? false,
    stop: readStop(fields),
    stopTokenIds: readInts(fields, "stop_token_ids"),
    includeStop: fields.boolean("include_stop_str_in_output") ?? false,
    promptLogprobs: fields.int("prompt_logprobs"),
    seed: fields.int("seed") ?? 0,
    stream: streaming ? { includeUsage: usage, continuousUsage: continuous } : undefined,
    returnTokenIds: fields.boolean("return_token_ids") ?? false,
    priority: fields.int("priority") ?? 0,
    cacheSalt: typeof fields.body["cache_salt"] === "string" ? fields.body["cache_salt"] : "",
    requestId: fields.string("request_id") ?? "",
    transfer: readTransferRequest(fields.body["kv_transfer_params"]),
  };
  const penalties = [fields.float("presence_penalty") ?? 0, fields.float("frequency_penalty") ?? 0] as const;
  const topK = fields.int("top_k") ?? 0;
  fields.check();
  if (options !== undefined && !streaming) {
    throw badRequest("Stream options can only be defined when `stream=True`.", "stream_options");
  }
  const salt = fields.body["cache_salt"] ?? undefined;
  if (salt !== undefined && (typeof salt !== "string" || salt === "")) {
    throw badRequest("Parameter 'cache_salt' must be a non-empty string if provided.", "cache_salt");
  }
  if (streaming && sampling.promptLogprobs !== undefined) {
    throw badRequest("`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs");
  }
  checkPenalties(penalties[0], penalties[1], topK);
  return sampling;
}

/** Range checks that vLLM makes once the prompt is known. `maxTokens` is the resolved ceiling. */
export function checkSampling(sampling: Sampling, maxTokens: number): void {
  const { n, temperature, topP, minTokens, stop, promptLogprobs } = sampling;
  if (n < 1) throw badRequest(`n must be at least 1, got ${n}.`);
  if (n > CHOICES_MAX) throw badRequest(`n must be at most ${CHOICES_MAX}, got ${n}.`);
  if (temperature < 0) {
    const value = pythonFloat(temperature);
    throw badRequest(`temperature must be non-negative, got ${value}.`, "temperature", value);
  }
  if (topP <= 0 || topP > 1) {
    const value = pythonFloat(topP);
    throw badRequest(`top_p must be in (0, 1], got ${value}.`, "top_p", value);
  }
  if (maxTokens < 1) {
    throw badRequest(`max_tokens must be at least 1, got ${maxTokens}.`, "max_tokens", String(maxTokens));
  }
  if (minTokens < 0) throw badRequest(`min_tokens must be greater than or equal to 0, got ${minTokens}.`);
  if (minTokens > maxTokens) {
    throw badRequest(`min_tokens must be less than or equal to max_tokens=${maxTokens}, got ${minTokens}.`);
  }
  if (stop.includes("")) throw badRequest("stop cannot contain an empty string.");
  if (promptLogprobs !== undefined) checkLogprobs(promptLogprobs, "prompt_logprobs");
}

/** Throws ApiError 400 for a number of alternatives outside vLLM's range. */
export function checkLogprobs(count: number, parameter: "logprobs" | "top_logprobs" | "prompt_logprobs"): void {
  if (count < -1) throw badRequest(`\`${parameter}\` must be a positive value or -1.`, parameter, String(count));
  if (count <= LOGPROBS_MAX) return;
  const [kind, name] = parameter === "prompt_logprobs" ? ["prompt", parameter] : ["sample", "logprobs"];
  const reason = `Requested ${kind} logprobs of ${count}, which is greater than max allowed: ${LOGPROBS_MAX}`;
  throw badRequest(reason, name, String(count));
}

/** A float as Python prints it. */
export function pythonFloat(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? `${value}.0` : String(value);
}

function checkPenalties(presence: number, frequency: number, topK: number): void {
  const range = (name: string, value: number) => {
    if (value < -2 || value > 2) throw badRequest(`${name} must be in [-2, 2], got ${pythonFloat(value)}.`);
  };
  range("presence_penalty", presence);
  range("frequency_penalty", frequency);
  if (topK < -1) throw badRequest(`top_k must be 0 (disable), or at least 1, got ${topK}.`);
}

function readStop(fields: FieldReader): readonly string[] {
  if (typeof fields.body["stop"] === "string") return [fields.body["stop"]];
  const given = fields.body["stop"] ?? undefined;
  if (given !== undefined && !Array.isArray(given)) {
    // Either a string or a list would do: both refusals are reported.
    fields.refuse("stop", "string_type", "Input should be a valid string", given);
  }
  const list = fields.list("stop") ?? [];
  return list.filter((value, index): value is string => {
    if (typeof value === "string") return true;
    fields.refuse(`stop.${index}`, "string_type", "Input should be a valid string", value);
    return false;
  });
}

function readInts(fields: FieldReader, name: string): readonly number[] {
  const list = fields.list(name) ?? [];
  return list.map((value, index) => fields.asInt(`${name}.${index}`, value) ?? 0);
}
