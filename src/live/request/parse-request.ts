import { type Refusal, refusal } from "../http/errors.ts";
import { type Fields, isFields, laxBoolean } from "../base/fields.ts";
import { NO_TEXT, type ParsedPrompt, parsePrompt, beyondLimits } from "./parse-prompt.ts";
import { type Asker, loopTurn, STAYS } from "../base/loop-turn.ts";
import { type JsonLimits, JsonScan, readText } from "../base/json-scan.ts";
import type { KnownBodies } from "./known-bodies.ts";
import type { GatewayLimits } from "../http/limits.ts";
import type { Route } from "../http/route.ts";

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
    if (scan?.crossed !== undefined) return beyond(scan.crossed, limits);
    if (fields !== undefined) return parseFields(reading.route, fields, limits, beginning);
  }
  const note = (scan: JsonScan): void => known?.note(body, scan, found === "seen", limits.knownBodyBytesKept);
  if (body.length > READ_AT_ONCE_BYTES) return parseInTurns(reading, note);
  const scan = new JsonScan(body, limits);
  scan.advance(body.length);
  if (scan.crossed !== undefined) return beyond(scan.crossed, limits);
  const parsed = parseText(textOf(body, scan), reading);
  if (!isRefusal(parsed)) note(scan);
  return parsed;
}

async function parseInTurns(reading: Reading, note: (scan: JsonScan) => void): Promise<ParsedRequest | Refusal> {
  const { body, limits, asker } = reading;
  const scan = new JsonScan(body, limits);
  do await loopTurn(asker);
  while (!scan.advance(SCAN_SLICE_BYTES));
  if (scan.crossed !== undefined) return beyond(scan.crossed, limits);
  await loopTurn(asker);
  const text = textOf(body, scan);
  await loopTurn(asker);
  const parsed = parseText(text, reading);
  await loopTurn(asker);
  if (!isRefusal(parsed)) note(scan);
  return parsed;
}

function beyond(crossed: keyof JsonLimits, limits: JsonLimits): Refusal {
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
    outputTokensMax:
      count(fields["max_completion_tokens"]) ?? count(fields["max_tokens"]) ?? count(fields["max_output_tokens"]),
    priority: finite(fields["priority"]),
    cacheSalt: typeof fields["cache_salt"] === "string" ? fields["cache_salt"] : "",
    cacheRead: !scoresPrompt(route, fields),
    answersTokenIds: fields["return_token_ids"] === true,
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

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

/** JSON's 1e999 is infinite once it is read, and no trace could hold it. */
function finite(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function answersOf(value: unknown): number {
  const answers = count(value) ?? 1;
  return answers > ANSWERS_MAX ? 1 : answers;
}
