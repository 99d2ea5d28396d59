import { type Refusal, refusal } from "../http/errors.ts";
import { type Fields, isFields, laxBoolean } from "../base/fields.ts";
import { type Asker, loopTurn, STAYS } from "../base/loop-turn.ts";
import { type JsonLimits, JsonScan, readText } from "../base/json-scan.ts";
import type { KnownBodies } from "./known-bodies.ts";
import type { GatewayLimits } from "../http/limits.ts";
import type { Dialect, Route } from "../http/route.ts";
import type { ChatMessage, PromptSource, TokenizedPrompt } from "../tokenizer/text/tokenizer.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";

/** What routing needs of a request body; everything else in it is the engine's to judge. */
export interface ParsedRequest {
  /** As the client named it; "" where it named none. */
  readonly model: string;
  /** The client asked for a stream. What comes is decided by the answer's content type. */
  readonly stream: boolean;
  readonly prompt: ParsedPrompt;
  /** Engine requests that this one fans out to: prompts times n. */
  readonly sequences: number;
  readonly outputTokensMax: number | undefined;
  readonly priority: number;
  readonly cacheSalt: string;
  /** False where the engine computes the whole prompt whatever its cache holds. */
  readonly cacheRead: boolean;
  /** The engine sends the ids of what it generates. */
  readonly answersTokenIds: boolean;
  /** The body's object; undefined for a body that is not JSON. */
  readonly fields: Fields | undefined;
}

/** A body of more bytes is read in turns: below that it takes a millisecond or two, whatever it holds within the limits. */
export const READ_AT_ONCE_BYTES = 1 << 16;
/** Bytes looked over in one turn, about 1 ms. */
const SCAN_SLICE_BYTES = 1 << 20;

/**
 * Reads a body of the declared content type: at once, or, where it is long, in turns with all other long work, and then
 * rejects with AskerLeft once nobody waits for it. Never throws on what a client sent.
 */
export function parseRequest(
  route: Route,
  contentType: string,
  body: Buffer,
  limits: GatewayLimits,
  asker: Asker = STAYS,
  known?: KnownBodies,
): ParsedRequest | Refusal | Promise<ParsedRequest | Refusal> {
  const type = contentType.split(";", 1)[0]!.trim().toLowerCase();
  if (type === "application/json" || type.endsWith("+json")) return parseJson({ route, body, limits, asker, known });
  if (route.dialect === "other" && type === "multipart/form-data") return parseForm(body);
  return refusal("bad-request", "Unsupported media type: send the body as application/json.");
}

export function isRefusal(value: object): value is Refusal {
  return "reason" in value;
}

interface Reading {
  readonly route: Route;
  readonly body: Buffer;
  readonly limits: GatewayLimits;
  readonly asker: Asker;
  readonly known: KnownBodies | undefined;
}

function parseJson(reading: Reading): ParsedRequest | Refusal | Promise<ParsedRequest | Refusal> {
  const { body, limits } = reading;
  if (body.length === 0) return refusal("bad-request", "The request body is empty; a JSON object is required.", "body");
  const known = reading.route.dialect === "chat" ? reading.known : undefined;
  const found = known?.find(body, limits.knownBodyBytesKept);
  if (typeof found === "object") {
    const { scan, fields, beginning } = known?.readOn(body, found, limits) ?? {};
    if (scan?.crossed !== undefined) return beyondJson(scan.crossed, limits);
    if (fields !== undefined) return parseFields(reading.route, fields, limits, beginning);
  }
  const note = (scan: JsonScan): void => known?.note(body, scan, found === "seen", limits.knownBodyBytesKept);
  if (body.length > READ_AT_ONCE_BYTES) return parseInTurns(reading, note);
  const scan = new JsonScan(body, limits);
  scan.advance(body.length);
  if (scan.crossed !== undefined) return beyondJson(scan.crossed, limits);
  const parsed = parseText(textOf(body, scan), reading);
  if (!isRefusal(parsed)) note(scan);
  return parsed;
}

async function parseInTurns(reading: Reading, note: (scan: JsonScan) => void): Promise<ParsedRequest | Refusal> {
  const { body, limits, asker } = reading;
  const scan = new JsonScan(body, limits);
  do await loopTurn(asker);
  while (!scan.advance(SCAN_SLICE_BYTES));
  if (scan.crossed !== undefined) return beyondJson(scan.crossed, limits);
  await loopTurn(asker);
  const text = textOf(body, scan);
  await loopTurn(asker);
  const parsed = parseText(text, reading);
  await loopTurn(asker);
  if (!isRefusal(parsed)) note(scan);
  return parsed;
}

function beyondJson(crossed: keyof JsonLimits, limits: JsonLimits): Refusal {
  const what = BEYOND[crossed].replace("MAX", String(limits[crossed]));
  return refusal("bad-request", `The request body ${what} (this gateway's limits.${crossed}).`, "body");
}

const BEYOND: Readonly<Record<keyof JsonLimits, string>> = {
  jsonDepthMax: "is nested more than MAX levels deep",
  jsonKeysMax: "has more than MAX keys",
  jsonFieldsMax: "has more than MAX fields",
  jsonItemsMax: "has more than MAX strings, arrays and objects",
  jsonValuesMax: "has more than MAX values",
};

function parseText(text: string, { route, limits }: Reading): ParsedRequest | Refusal {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refusal("bad-request", "The request body is not valid JSON.", "body");
  }
  if (!isFields(value)) return refusal("bad-request", "The request body must be a JSON object.", "body");
  return parseFields(route, value, limits);
}

/** The text of a body, without the mark of UTF-8 that some clients begin with and vLLM passes over. */
function textOf(body: Buffer, { unread }: JsonScan): string {
  return readText(body, body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0, body.length, unread);
}

function parseFields(
  route: Route,
  fields: Fields,
  limits: GatewayLimits,
  beginning?: readonly unknown[],
): ParsedRequest | Refusal {
  const model = fields["model"] ?? "";
  if (typeof model !== "string") return refusal("bad-request", "`model` must be a string.", "model");
  const stream = laxBoolean(fields["stream"] ?? false);
  if (stream === undefined) return refusal("bad-request", "`stream` must be true or false.", "stream");
  const prompt = parsePrompt(route.dialect, fields, beginning);
  if (isRefusal(prompt)) return prompt;
  const tooMuch = beyondLimits(prompt, limits);
  if (tooMuch !== undefined) return tooMuch;
  return {
    model,
    stream,
    prompt,
    sequences: prompt.count * answersOf(fields["n"]),
    outputTokensMax: ceilingOf(route.dialect, fields),
    priority: finite(fields["priority"]),
    cacheSalt: typeof fields["cache_salt"] === "string" ? fields["cache_salt"] : "",
    cacheRead: !scoresPrompt(route, fields),
    answersTokenIds: laxBoolean(fields["return_token_ids"] ?? false) !== false,
    fields,
  };
}

/**
 * Whether vLLM computes log-probabilities of the prompt, for which it reads no block of its prefix cache: where they are
 * asked for, and where a client wants them of the answer and the prompt echoed before it.
 */
function scoresPrompt({ dialect }: Route, fields: Fields): boolean {
  if (dialect !== "chat" && dialect !== "completions") return false;
  if ((fields["prompt_logprobs"] ?? null) !== null) return true;
  // Of a chat, vLLM asks for the prompt's own where nothing is stated.
  if (fields["echo"] !== true) return false;
  const { top_logprobs: ofChat = 0, logprobs = null } = fields;
  return (dialect === "chat" ? ofChat : logprobs) !== null;
}

/** A form, as for audio: only the model's name is looked for. The value ends at the part's own line break. */
function parseForm(body: Buffer): ParsedRequest {
  const name = body.indexOf('name="model"');
  const start = name < 0 ? -1 : body.indexOf("\r\n\r\n", name);
  const end = start < 0 ? -1 : body.indexOf("\r\n", start + 4);
  const fits = end > 0 && start - name < 256 && end - start < 512;
  return unread(fits ? body.toString("utf8", start + 4, end) : "");
}

/** A request without text to route on. */
function unread(model: string): ParsedRequest {
  return {
    model,
    stream: false,
    prompt: NO_TEXT,
    sequences: 1,
    outputTokensMax: undefined,
    priority: 0,
    cacheSalt: "",
    cacheRead: true,
    answersTokenIds: false,
    fields: undefined,
  };
}

/** Most answers of one prompt that vLLM takes (VLLM_MAX_N_SEQUENCES); it refuses more itself, and they charge nobody. */
const ANSWERS_MAX = 16_384;

/** By the field that vLLM reads on the route: another one's name, which it passes over, lowers nothing. */
function ceilingOf(dialect: Dialect, fields: Fields): number | undefined {
  const [chat, plain, responses] = CEILINGS.map((name) => count(fields[name]));
  switch (dialect) {
    case "chat":
      return chat ?? plain;
    case "completions":
    case "messages":
      return plain;
    case "responses":
      return responses;
    case "other":
      return chat ?? plain ?? responses;
  }
}

const CEILINGS = ["max_completion_tokens", "max_tokens", "max_output_tokens"] as const;

/** A whole number above 0 as vLLM's request models read it (Pydantic's lax mode): a text is one, too. */
function count(value: unknown): number | undefined {
  const number = typeof value === "string" && LAX_COUNT.test(value) ? Number(value.replaceAll("_", "")) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

const LAX_COUNT = /^\s{0,8}\+?\d{1,16}(?:_\d{1,16}){0,16}(?:\.0{0,16})?\s{0,8}$/;

/** JSON's 1e999 is infinite once it is read, and no trace could hold it. */
function finite(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function answersOf(value: unknown): number {
  const answers = count(value) ?? 1;
  return answers > ANSWERS_MAX ? 1 : answers;
}

/** What a request asks the engine to read. */
export interface ParsedPrompt {
  /** The first prompt, which stands for all; undefined where there is no text. */
  readonly source: PromptSource | undefined;
  /** Number of prompts. */
  readonly count: number;
  /** Of each, where there are several, for counting their tokens without encoding each: characters, or ids. */
  readonly lengths?: readonly number[];
}

/** `beginning` is what a chat's messages begin with, where that is known. */
export function parsePrompt(dialect: Dialect, fields: Fields, beginning?: readonly unknown[]): ParsedPrompt | Refusal {
  switch (dialect) {
    case "chat":
      return parseChat(fields, beginning);
    case "completions":
      return parseCompletion(fields);
    case "messages":
    case "responses":
    case "other":
      return parseOther(fields);
  }
}

type Chat = Extract<PromptSource, { kind: "chat" }>;

const NO_TEXT: ParsedPrompt = { source: undefined, count: 1 };

function one(source: PromptSource): ParsedPrompt {
  return { source, count: 1 };
}

function parseChat(fields: Fields, beginning: readonly unknown[] | undefined): ParsedPrompt | Refusal {
  const messages = fields["messages"];
  if (messages === undefined) return refusal("bad-request", "`messages` is required.", "messages");
  if (!Array.isArray(messages)) return refusal("bad-request", "`messages` must be an array.", "messages");
  if (messages.length === 0) {
    return refusal("bad-request", "`messages` is empty; provide at least one message.", "messages");
  }
  const wrong = messages.findIndex((message) => !isMessage(message));
  if (wrong >= 0) {
    return refusal(
      "bad-request",
      `\`messages[${wrong}]\` must be an object with a string \`role\`.`,
      `messages[${wrong}]`,
    );
  }
  const source = chat(messages as ChatMessage[], fields);
  return one(beginning === undefined ? source : { ...source, beginning: beginning as ChatMessage[] });
}

const TEMPLATE_FIELDS = [
  "chat_template",
  "add_special_tokens",
  "chat_template_kwargs",
  "add_generation_prompt",
  "continue_final_message",
  "documents",
  "reasoning_effort",
] as const;

function chat(messages: readonly ChatMessage[], fields: Fields): Chat {
  const template: Record<string, unknown> = {};
  for (const name of TEMPLATE_FIELDS) if (fields[name] !== undefined) template[name] = fields[name];
  const tools = Array.isArray(fields["tools"]) ? (fields["tools"] as unknown[]) : undefined;
  return { kind: "chat", messages, tools, template };
}

function isMessage(value: unknown): value is ChatMessage {
  return typeof value === "object" && value !== null && "role" in value && typeof value.role === "string";
}

/** vLLM's prompt: text, token ids, or an array of either. */
function parseCompletion(fields: Fields): ParsedPrompt | Refusal {
  const prompt = fields["prompt"];
  if (prompt === undefined || prompt === null) {
    if (fields["prompt_embeds"] !== undefined) return NO_TEXT;
    return refusal("bad-request", "`prompt` is required.", "prompt");
  }
  if (prompt === "") return refusal("bad-request", "`prompt` is empty.", "prompt");
  if (Array.isArray(prompt) && prompt.length === 0) return refusal("bad-request", "`prompt` is empty.", "prompt");
  return (
    textOrTokens(prompt, fields["add_special_tokens"] !== false) ??
    refusal(
      "bad-request",
      "`prompt` must be a string, an array of strings, an array of token ids, or an array of such arrays.",
      "prompt",
    )
  );
}

function textOrTokens(value: unknown, specialTokens = true): ParsedPrompt | undefined {
  const text = (given: string) => ({ kind: "text", text: given, ...(specialTokens ? {} : NO_SPECIAL_TOKENS) }) as const;
  if (typeof value === "string") return one(text(value));
  if (!Array.isArray(value) || value.length === 0) return undefined;
  if (isTokens(value)) return one({ kind: "tokens", tokens: value });
  if (value.every((item) => typeof item === "string")) {
    return many(value, text(value[0]!));
  }
  if (value.every((item): item is number[] => Array.isArray(item) && isTokens(item))) {
    return many(value, { kind: "tokens", tokens: value[0]! });
  }
  return undefined;
}

const NO_SPECIAL_TOKENS = { specialTokens: false } as const;

function many(prompts: readonly { readonly length: number }[], source: PromptSource): ParsedPrompt {
  return prompts.length === 1
    ? one(source)
    : { source, count: prompts.length, lengths: prompts.map(({ length }) => length) };
}

function isTokens(value: readonly unknown[]): value is number[] {
  return value.every((item) => typeof item === "number" && Number.isSafeInteger(item) && item >= 0);
}

/** Anthropic's messages, OpenAI's responses and embeddings, and whatever else has text under a known name. */
function parseOther(fields: Fields): ParsedPrompt {
  const system = fields["system"] ?? fields["instructions"];
  const before: ChatMessage[] = system === undefined || system === null ? [] : [{ role: "system", content: system }];
  for (const name of ["messages", "input"]) {
    const list = fields[name];
    if (Array.isArray(list) && list.length > 0 && list.every(isMessage)) return one(chat([...before, ...list], fields));
  }
  const input = fields["input"];
  if (before.length > 0 && typeof input === "string") {
    return one(chat([...before, { role: "user", content: input }], fields));
  }
  return (
    textOrTokens(input) ?? textOrTokens(fields["prompt"]) ?? (before.length > 0 ? one(chat(before, fields)) : NO_TEXT)
  );
}

type CountLimit = "messagesMax" | "contentPartsMax" | "toolsMax" | "promptsMax";

/** What a request asks the engine to read has more of something than the limits allow; undefined where it has not. */
function beyondLimits({ source, count }: ParsedPrompt, limits: GatewayLimits): Refusal | undefined {
  if (count > limits.promptsMax) return beyond("prompt", `${count} prompts`, "promptsMax", limits);
  if (source?.kind !== "chat") return undefined;
  const { messages, tools } = source;
  if (messages.length > limits.messagesMax) {
    return beyond("messages", `${messages.length} messages`, "messagesMax", limits);
  }
  if (tools !== undefined && tools.length > limits.toolsMax) {
    return beyond("tools", `${tools.length} tools`, "toolsMax", limits);
  }
  let parts = 0;
  for (let at = 0; at < messages.length; at++) {
    const { content } = messages[at]!;
    if (Array.isArray(content)) parts += content.length;
    if (parts <= limits.contentPartsMax) continue;
    return beyond(`messages[${at}].content`, `${parts} or more content parts`, "contentPartsMax", limits);
  }
  return undefined;
}

function beyond(param: string, what: string, limit: CountLimit, limits: GatewayLimits): Refusal {
  const message = `The request has ${what}; this gateway accepts at most ${limits[limit]} (its limits.${limit}).`;
  return refusal("bad-request", message, param);
}

/**
 * What the engine reads of a prompt whose client set vLLM's `truncate_prompt_tokens`. The prompt itself where nothing is
 * cut; else one that is no longer exact.
 *
 * With `truncation_side` "right" its beginning stays, and so do the blocks within it. Without that vLLM cuts on the left:
 * where it then begins depends on its length, so nothing that it shares with other prompts stands where theirs does. -1
 * cuts to the model's length, which is not known here. A value that vLLM refuses changes nothing.
 */
export function truncated(prompt: TokenizedPrompt, fields: Fields | undefined): TokenizedPrompt {
  const limit = limitIn(fields);
  if (limit === undefined) return prompt;
  if (limit === TO_MODEL_LENGTH) return { ...prompt, exact: false };
  if (prompt.exact && prompt.promptTokens <= limit) return prompt;
  const promptTokens = Math.min(limit, prompt.promptTokens);
  // An estimate may be too low, but where it is, the beginning is still the better guess.
  const uncut = promptTokens === prompt.promptTokens;
  const blocks = uncut ? prompt.blocks : fields?.["truncation_side"] === "right" ? leading(prompt, limit) : EMPTY_CHAIN;
  return { ...prompt, blocks, promptTokens, exact: false };
}

/**
 * Tokens of each of several prompts of a request, of whose first the engine reads `prompt`; the others are known by their
 * lengths, and each is cut like the first. Undefined where it has one.
 */
export function tokensByPrompt(
  whole: TokenizedPrompt,
  prompt: TokenizedPrompt,
  { lengths }: Pick<ParsedPrompt, "lengths">,
  fields: Fields | undefined,
): number[] | undefined {
  const first = lengths?.[0];
  if (lengths === undefined || first === undefined) return undefined;
  const given = limitIn(fields) ?? TO_MODEL_LENGTH;
  const limit = given === TO_MODEL_LENGTH ? Infinity : given;
  const tokensOf = (length: number) =>
    Math.min(limit, first > 0 ? (whole.promptTokens * length) / first : whole.promptTokens);
  return lengths.map((length, i) => (i === 0 ? prompt.promptTokens : tokensOf(length)));
}

const TO_MODEL_LENGTH = -1;

/** Undefined where there is none, or one that vLLM refuses. */
function limitIn(fields: Fields | undefined): number | undefined {
  const limit = fields?.["truncate_prompt_tokens"];
  return typeof limit === "number" && Number.isSafeInteger(limit) && limit >= TO_MODEL_LENGTH ? limit : undefined;
}

function leading({ blocks }: TokenizedPrompt, tokens: number): TokenizedPrompt["blocks"] {
  const length = Math.min(blocks.length, Math.floor(tokens / blocks.blockTokens));
  return { hashes: blocks.hashes.subarray(0, 2 * length), length, blockTokens: blocks.blockTokens };
}
