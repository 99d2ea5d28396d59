import { randomInt } from "node:crypto";
import { type Fields, isFields, laxBoolean } from "../base/fields.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { Dialect } from "../http/route.ts";

/**
 * Why a stream would not go on exactly where it breaks.
 * - route: it is no stream of chat or completions
 * - several: more than one answer; logprobs, echo, beam, structured, tools, media: what a part of an answer has no form for
 * - seed: a seeded draw would be another one; penalties: the engine would count the answer so far as prompt
 * - length: neither the request nor its endpoints state how long the answer may be
 * - field: the body has a field of which it is not known what it does
 */
export type UnfitRequest =
  | "route"
  | "several"
  | "logprobs"
  | "echo"
  | "beam"
  | "structured"
  | "tools"
  | "media"
  | "seed"
  | "penalties"
  | "length"
  | "field";

/** What of a request its continuation at another endpoint needs. */
export interface ContinuationPlan {
  readonly dialect: "chat" | "completions";
  /** Fields of the body that the continuation has as they are. */
  readonly carried: Fields;
  /** Of the whole answer; undefined where the model's length alone bounds it. */
  readonly outputTokensMax: number | undefined;
  /** Of prompt and answer together, where that bounds the answer. */
  readonly modelTokensMax: number;
  readonly outputTokensMin: number;
  /** The same prompt has the same answer, but for the engine's own nondeterminism. */
  readonly greedy: boolean;
  /** Its answer so far can stand behind its prompt as text. */
  readonly fitsText: boolean;
  readonly stops: readonly string[];
  /** An answer ends with the stop string that it met, not before it; the engine then holds no text back. */
  readonly includesStop: boolean;
  /** The client asked for token ids itself. */
  readonly showsIds: boolean;
  readonly showsUsage: boolean;
  readonly showsRunningUsage: boolean;
}

/** The plan of a stream, or why there is none; undefined for what is no stream of chat or completions. */
export function continuationPlan(
  parsed: ParsedRequest,
  dialect: Dialect,
  modelTokensMax: () => number | undefined,
): ContinuationPlan | UnfitRequest | undefined {
  const { fields, stream } = parsed;
  if (!stream || fields === undefined || (dialect !== "chat" && dialect !== "completions")) return undefined;
  const greedy = isGreedy(fields);
  const unfit = unfitBy(parsed, fields, greedy);
  if (unfit !== undefined) return unfit;
  const outputTokensMax = parsed.outputTokensMax ?? (dialect === "completions" ? COMPLETION_TOKENS_DEFAULT : undefined);
  const tokensMax = outputTokensMax === undefined ? modelTokensMax() : Infinity;
  if (tokensMax === undefined) return "length";
  const options = isFields(fields["stream_options"]) ? fields["stream_options"] : {};
  const showsUsage = laxBoolean(options["include_usage"]) === true;
  const stop = fields["stop"];
  return {
    dialect,
    carried: Object.fromEntries(Object.entries(fields).filter(([name]) => CARRIED.has(name))),
    outputTokensMax,
    modelTokensMax: tokensMax,
    outputTokensMin: typeof fields["min_tokens"] === "number" ? fields["min_tokens"] : 0,
    greedy,
    fitsText: fitsText(dialect, fields) && !parsed.answersTokenIds,
    stops: (Array.isArray(stop) ? stop : [stop]).filter((one): one is string => typeof one === "string" && one !== ""),
    includesStop: laxBoolean(fields["include_stop_str_in_output"]) === true,
    showsIds: parsed.answersTokenIds,
    showsUsage,
    showsRunningUsage: showsUsage && laxBoolean(options["continuous_usage_stats"]) === true,
  };
}

/** A prompt that is text, or a chat whose last message is not the model's own already; none that the engine cuts. */
function fitsText(dialect: ContinuationPlan["dialect"], fields: Fields): boolean {
  const { prompt, messages, truncate_prompt_tokens: truncated } = fields;
  if ((truncated ?? null) !== null) return false;
  if (dialect === "completions") return typeof prompt === "string";
  const { continue_final_message: continues, add_generation_prompt: generates } = fields;
  return Array.isArray(messages) && laxBoolean(continues ?? false) === false && laxBoolean(generates ?? true) === true;
}

/** vLLM's and OpenAI's, of a completion that states none. */
const COMPLETION_TOKENS_DEFAULT = 16;

/** Fields that mean the same for the rest of an answer as for the whole of it, under the same name in a completion. */
const CARRIED: ReadonlySet<string> = new Set([
  "model",
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "repetition_penalty",
  "stop",
  "stop_token_ids",
  "include_stop_str_in_output",
  "ignore_eos",
  "skip_special_tokens",
  "spaces_between_special_tokens",
  "allowed_token_ids",
  "logit_bias",
  "seed",
  "user",
  "priority",
  "cache_salt",
  "session_id",
]);

/** Fields that are looked at here, that went into the prompt, or that engines do nothing with that an answer shows. */
const UNDERSTOOD: ReadonlySet<string> = new Set([
  ...CARRIED,
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "min_tokens",
  "prompt",
  "messages",
  "n",
  "best_of",
  "echo",
  "suffix",
  "logprobs",
  "top_logprobs",
  "prompt_logprobs",
  "use_beam_search",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "functions",
  "function_call",
  "response_format",
  "structured_outputs",
  "presence_penalty",
  "frequency_penalty",
  "return_token_ids",
  "request_id",
  "add_special_tokens",
  "add_generation_prompt",
  "continue_final_message",
  "chat_template",
  "chat_template_kwargs",
  "documents",
  "reasoning_effort",
  "truncate_prompt_tokens",
  "truncation_side",
  "prompt_cache_key",
  "conversation_id",
  "safety_identifier",
  "metadata",
  "store",
  "service_tier",
]);

function unfitBy(parsed: ParsedRequest, fields: Fields, greedy: boolean): UnfitRequest | undefined {
  const has = (name: string): boolean => (fields[name] ?? null) !== null;
  if (parsed.sequences !== 1 || (has("best_of") && fields["best_of"] !== 1)) return "several";
  if ((has("logprobs") && fields["logprobs"] !== false) || has("prompt_logprobs")) return "logprobs";
  if (laxBoolean(fields["echo"] ?? false) !== false || has("suffix")) return "echo";
  if (laxBoolean(fields["use_beam_search"] ?? false) !== false) return "beam";
  const { response_format: format } = fields;
  if (has("structured_outputs") || (has("response_format") && !(isFields(format) && format["type"] === "text")))
    return "structured";
  const tools = fields["tools"];
  const offered = Array.isArray(tools) && tools.length > 0 && fields["tool_choice"] !== "none";
  if (offered || has("functions")) return "tools";
  if (parsed.prompt.source === undefined || hasMedia(fields["messages"])) return "media";
  if (has("seed") && !greedy) return "seed";
  if (isWeight(fields["presence_penalty"]) || isWeight(fields["frequency_penalty"])) return "penalties";
  return Object.keys(fields).every((name) => UNDERSTOOD.has(name) || !has(name)) ? undefined : "field";
}

/** vLLM takes the likeliest token below this temperature. */
const GREEDY_TEMPERATURE = 1e-5;

/** The same prompt has the same answer, but for the engine's own nondeterminism. */
function isGreedy({ temperature }: Fields): boolean {
  return typeof temperature === "number" && temperature < GREEDY_TEMPERATURE;
}

function isWeight(penalty: unknown): boolean {
  return (penalty ?? 0) !== 0;
}

/** What is no text has tokens of its own in the prompt, which stand for something that is not in them. */
function hasMedia(messages: unknown): boolean {
  if (!Array.isArray(messages)) return false;
  return messages.some((message) => {
    const content: unknown = isFields(message) ? message["content"] : undefined;
    return Array.isArray(content) && content.some((part) => isFields(part) && part["type"] !== "text");
  });
}

/** Routes whose streams are read event by event. */
export type RepeatedDialect = Exclude<Dialect, "other">;

/**
 * What a request must have beside its own fields so that another engine makes the same answer of it, as far as engines
 * repeat themselves: nothing where it takes the likeliest token each time, or draws by a seed that the request states; a seed
 * where it may be given one (`seeds`). Undefined where no field does it. Ids that an answer has beside its text are not held
 * against what the client has, so such answers are left out.
 */
export function fieldsToRepeat(parsed: ParsedRequest, dialect: RepeatedDialect, seeds: boolean): object | undefined {
  const { fields, stream, sequences } = parsed;
  if (!stream || fields === undefined || sequences !== 1) return undefined;
  if (UNREPEATED.some((name) => isStated(fields[name]))) return undefined;
  const isOpenAi = dialect === "chat" || dialect === "completions";
  if (!isOpenAi && (isStated(fields["logprobs"]) || isStated(fields["top_logprobs"]))) return undefined;
  if (dialect === "responses" && !isOneTurn(fields)) return undefined;
  if (isGreedy(fields)) return {};
  // Anthropic's messages have no seed, and vLLM passes over one.
  if (dialect === "messages") return undefined;
  if (Number.isSafeInteger(fields["seed"])) return {};
  return seeds && (fields["seed"] ?? null) === null ? { seed: randomInt(SEED_MAX) } : undefined;
}

/** Engines take any of 63 bits, and JSON has fewer. */
const SEED_MAX = 2 ** 31;

const UNREPEATED = ["prompt_logprobs", "return_token_ids", "use_beam_search", "best_of", "include", "background"];

function isStated(value: unknown): boolean {
  return (value ?? null) !== null && laxBoolean(value) !== false && !(Array.isArray(value) && value.length === 0);
}

/** The engine itself calls other tools, which may answer otherwise. */
function isOneTurn({ tools }: { readonly tools?: unknown }): boolean {
  return !Array.isArray(tools) || tools.every((tool) => isFields(tool) && tool["type"] === "function");
}
