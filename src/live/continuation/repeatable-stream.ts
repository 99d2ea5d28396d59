import { eventData } from "../answer/sse-scanner.ts";
import { type Fields, isFields, laxBoolean } from "../base/fields.ts";
import { type EventPiece, eventPieces, tokenEntries } from "./event-pieces.ts";
import type { UnfitStream } from "./kept-stream.ts";
import { randomInt } from "node:crypto";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { Dialect } from "../http/route.ts";
import { isGreedy } from "./continuation-plan.ts";

interface Part {
  readonly name: string;
  text: string;
}

export interface RepeatableOptions {
  readonly dialect: RepeatedDialect;
  /** Code units of text that are kept of one answer. */
  readonly textMax: number;
  /** As of KeptStreamOptions. */
  readonly hold: (bytes: number) => boolean;
}

/**
 * What a client has of an answer that another engine makes again from its beginning, should its stream break: what is made
 * again is held against it, and only what is new goes out.
 */
export class RepeatableStream {
  readonly dialect: RepeatedDialect;
  readonly #options: RepeatableOptions;
  readonly #parts: Part[] = [];
  #units = 0;
  #heldUnits = 0;
  #unfit: UnfitStream | undefined;
  /** Of the first event that has one: how the stream calls itself. */
  first: Fields | undefined;
  /** Ids of items of a response, by their place. */
  readonly itemIds = new Map<string, string>();
  /** Events that the client has. */
  events = 0;
  /** Tokens of which it has the log-probabilities. */
  tokenEntries = 0;

  constructor(options: RepeatableOptions) {
    this.#options = options;
    this.dialect = options.dialect;
  }

  /** Why it cannot go on; undefined where it can. */
  get unfit(): UnfitStream | undefined {
    return this.#unfit;
  }
  get parts(): readonly Readonly<Part>[] {
    return this.#parts;
  }

  /** An event for the client in bytes[start..end). */
  read(bytes: Buffer, start: number, end: number): void {
    this.events++;
    if (this.#unfit !== undefined) return;
    const event = eventData(bytes.subarray(start, end));
    if (event !== undefined) this.add(event);
  }

  /** The same of an event that was read. */
  add(event: Fields): void {
    this.first ??= nameOf(this.dialect, event);
    if (this.dialect === "responses") noteItem(this.itemIds, event);
    this.tokenEntries += tokenEntries(event).count;
    for (const piece of eventPieces(this.dialect, event)) this.#take(piece);
  }

  /** Another endpoint answers anew, and the client has nothing. */
  reset(): void {
    if (this.#unfit !== undefined) return;
    this.#parts.length = 0;
    this.#units = 0;
    this.first = undefined;
    this.events = 0;
    this.tokenEntries = 0;
    this.itemIds.clear();
  }

  close(): void {
    this.#options.hold(-UNIT_BYTES * this.#heldUnits);
    this.#heldUnits = 0;
    this.#parts.length = 0;
  }

  #take({ name, text }: EventPiece): void {
    const last = this.#parts.at(-1);
    if (last?.name === name) last.text += text;
    else this.#parts.push({ name, text });
    this.#units += text.length + (last?.name === name ? 0 : name.length + PART_UNITS);
    if (this.#units > this.#options.textMax) return this.#giveUp("long");
    if (this.#units <= this.#heldUnits) return;
    const more = Math.max(UNITS_AT_ONCE, this.#units - this.#heldUnits);
    if (!this.#options.hold(UNIT_BYTES * more)) return this.#giveUp("room");
    this.#heldUnits += more;
  }

  #giveUp(why: UnfitStream): void {
    this.close();
    this.#unfit = why;
  }
}

/** Notes the id that a response's item got, or undefined. */
export function noteItem(ids: Map<string, string>, { type, output_index: place, item }: Fields): void {
  if (type !== "response.output_item.added" || !isFields(item) || typeof item["id"] !== "string") return;
  ids.set(String(place), item["id"]);
}

/** What a stream calls itself in each event, or in its first. */
function nameOf(dialect: RepeatedDialect, event: Fields): Fields | undefined {
  if (dialect === "chat" || dialect === "completions") return typeof event["id"] === "string" ? event : undefined;
  const whole = event[dialect === "messages" ? "message" : "response"];
  return isFields(whole) ? whole : undefined;
}

const UNIT_BYTES = 2;
const UNITS_AT_ONCE = 1_024;
/** What a part takes beside its text. */
const PART_UNITS = 64;

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
