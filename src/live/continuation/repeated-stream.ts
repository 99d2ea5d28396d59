import type { AnswerCounts, Delivery } from "../answer/answer.ts";
import { type Usage, findUsage } from "../answer/answer-json.ts";
import { endsBlock, eventData, isUnprovenEnd, mayEndBroken, SseScanner } from "../answer/sse-scanner.ts";
import { type Fields, isFields } from "../base/fields.ts";
import type { RepeatedDialect } from "./continuation-plan.ts";
import { DONE_EVENT, ResumedAnswer } from "./continued-answer.ts";
import type { UnfitStream } from "./kept-stream.ts";

interface Part {
  readonly name: string;
  text: string;
}

interface RepeatableOptions {
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
function noteItem(ids: Map<string, string>, { type, output_index: place, item }: Fields): void {
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

/**
 * Carries an answer that another endpoint makes again from its beginning. What the client has of it is left out, and has to
 * be the same; where it is not, the stream is cut. The rest goes out under the names of the stream that broke.
 */
export class RepeatedAnswer extends ResumedAnswer {
  readonly #stream: RepeatableStream;
  /** What the client has and that is still to come again. */
  readonly #again: { readonly name: string; text: string }[];
  /** The same of log-probabilities of tokens. */
  #entriesAgain: number;
  readonly #itemIds = new Map<string, string>();
  #responseId: string | undefined;
  #ends = false;
  #tokens = 0;
  #usage: Usage | undefined;
  readonly #blockEnds: Fields[] = [];

  constructor(delivery: Delivery, stream: RepeatableStream) {
    super(delivery, new SseScanner(stream.dialect, delivery.limits.eventBytesInspected));
    this.#stream = stream;
    this.#again = stream.parts.map((part) => ({ ...part }));
    this.#entriesAgain = stream.tokenEntries;
  }

  counts(): AnswerCounts {
    return { usage: this.#usage, tokensSeen: this.#tokens, responseId: this.#responseId };
  }

  protected override event(): boolean {
    if (this.#holdsBlockEnd()) return true;
    switch (this.scanner.kind) {
      case "token":
        this.#tokens++;
        this.begin();
        if (!this.#event()) return false;
        this.delivery.progress(this.#tokens);
        return true;
      case "end":
        this.#ends = true;
        return this.#event();
      case "meta":
      case "usage":
        return this.#event();
      case "done":
        return this.#done();
      case "error":
      case "abort":
      case "garbage":
        return this.broke();
      case "comment":
        return true;
    }
  }

  /** True of an end of a block, which waits for what follows it. */
  #holdsBlockEnd(): boolean {
    const { bytes, start, end, kind } = this.scanner;
    const { dialect } = this.#stream;
    if (mayEndBroken(kind)) return false;
    const event = endsBlock(dialect, kind, bytes, start, end) ? eventData(bytes.subarray(start, end)) : undefined;
    if (event !== undefined) this.#blockEnds.push(event);
    else if (!this.#isUnproven()) this.#passBlockEnds();
    return event !== undefined;
  }

  #passBlockEnds(): void {
    for (const held of this.#blockEnds.splice(0)) if (this.#trim(held) === true) this.#pass(held);
  }

  #isUnproven(): boolean {
    const { bytes, start, end, kind } = this.scanner;
    return isUnprovenEnd(this.#stream.dialect, kind, () => eventData(bytes.subarray(start, end)));
  }

  /** Passes on what the client has not of an event; false where it has another one in its place. */
  #event(): boolean {
    const { bytes, start, end, kind } = this.scanner;
    const event = eventData(bytes.subarray(start, end));
    if (event === undefined) return true;
    this.#usage = findUsage(bytes, start, end) ?? this.#usage;
    if (kind === "usage" && this.delivery.hidesUsage) return true;
    if (this.#stream.dialect === "responses") noteItem(this.#itemIds, event);
    const isNew = this.#trim(event);
    if (isNew === true || kind === "usage" || kind === "done") this.#pass(event);
    return isNew !== undefined || this.diverged();
  }

  /** Leaves out of an event what the client has; true where something is left, undefined where it is something else. */
  #trim(event: Fields): boolean | undefined {
    let isNew = false;
    for (const { name, text, keep } of eventPieces(this.#stream.dialect, event)) {
      let rest = text;
      const first = this.#again[0];
      if (first !== undefined) {
        const both = Math.min(first.text.length, text.length);
        if (first.name !== name || first.text.slice(0, both) !== text.slice(0, both)) return undefined;
        first.text = first.text.slice(both);
        if (first.text === "") this.#again.shift();
        rest = text.slice(both);
        keep(rest);
        // The next part may begin only once this one is over.
        if (rest !== "" && this.#again.length > 0) return undefined;
      }
      isNew ||= rest !== "";
    }
    const { count, skip } = tokenEntries(event);
    const had = Math.min(count, this.#entriesAgain);
    if (had > 0) skip(had);
    this.#entriesAgain -= had;
    return isNew || count > had;
  }

  #pass(event: Fields): void {
    const { dialect, first, events } = this.#stream;
    this.#stream.add(event);
    this.#stream.events++;
    if (dialect === "chat" || dialect === "completions") {
      const named = { ...event, ...(first && { id: first["id"], created: first["created"] }) };
      this.out += `data: ${JSON.stringify(named)}\n\n`;
    } else if (dialect === "messages") this.out += typedEvent(event, JSON.stringify(event));
    else this.out += typedEvent(event, this.#asFirst({ ...event, sequence_number: events }));
  }

  /** An event of a response, with the ids that the client knows in place of those that this engine made up. */
  #asFirst(event: Fields): string {
    const { first, itemIds } = this.#stream;
    let text = JSON.stringify(event);
    for (const [place, id] of this.#itemIds) text = renamed(text, id, itemIds.get(place));
    const { response } = event;
    const own = isFields(response) ? response["id"] : undefined;
    this.#responseId = typeof first?.["id"] === "string" ? first["id"] : undefined;
    return typeof own === "string" ? renamed(text, own, this.#responseId) : text;
  }

  #done(): false {
    if (this.#again.length > 0 || this.#entriesAgain > 0) return this.diverged();
    const { dialect } = this.#stream;
    if (dialect === "messages" && !this.#ends) return this.broke();
    if (this.#isUnproven()) return this.#proveEnd();
    if (dialect === "chat" || dialect === "completions") this.out += DONE_EVENT;
    else if (!this.#event()) return false;
    return this.complete();
  }

  /** What ends it waits until the engine was asked whether it still serves. */
  #proveEnd(): false {
    const { bytes, start, end } = this.scanner;
    const event = eventData(bytes.subarray(start, end));
    this.#usage = findUsage(bytes, start, end) ?? this.#usage;
    this.flush();
    this.proveEnd(() => {
      this.#passBlockEnds();
      if (event !== undefined) this.#pass(event);
    });
    return false;
  }
}

function typedEvent({ type }: Fields, data: string): string {
  return `event: ${String(type)}\ndata: ${data}\n\n`;
}

/** Ids stand between quotes, and are random. */
function renamed(text: string, from: string, to: string | undefined): string {
  return to === undefined ? text : text.replaceAll(JSON.stringify(from), JSON.stringify(to));
}

/** A part of an answer: what it is a part of, and its text. Parts of one name in a row are one part, however they were cut. */
interface EventPiece {
  readonly name: string;
  readonly text: string;
  /** Has the event state this much of it. */
  readonly keep: (text: string) => void;
}

/** What a stream's event brings of the answer, in order; none where it brings nothing that a client has to have once. */
function eventPieces(dialect: RepeatedDialect, event: Fields): EventPiece[] {
  switch (dialect) {
    case "chat":
      return [...chatPieces(event), ...endPieces(firstChoice(event)["finish_reason"])];
    case "completions":
      return [...textPieces(firstChoice(event), ["text"]), ...endPieces(firstChoice(event)["finish_reason"])];
    case "messages":
      return messagePieces(event);
    case "responses":
      return responsePieces(event);
  }
}

/** What an event has for each of its tokens: log-probabilities, as OpenAI's chat or completions have them. */
interface TokenEntries {
  readonly count: number;
  /** Leaves out so many of the first. */
  readonly skip: (count: number) => void;
}

/** None where nothing is stated of single tokens. */
function tokenEntries(event: Fields): TokenEntries {
  const { logprobs } = firstChoice(event);
  if (!isFields(logprobs)) return NO_ENTRIES;
  const { content, tokens = content } = logprobs;
  const skip = (count: number): void => {
    for (const [name, list] of Object.entries(logprobs))
      if (Array.isArray(list)) (logprobs as Record<string, unknown>)[name] = list.slice(count);
  };
  return Array.isArray(tokens) ? { count: tokens.length, skip } : NO_ENTRIES;
}

const NO_ENTRIES: TokenEntries = { count: 0, skip: () => {} };

/** OpenAI's: the first of its choices, where it has one. */
function firstChoice({ choices }: Fields): Fields {
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isFields(first) ? first : {};
}

function chatPieces(event: Fields): EventPiece[] {
  const { delta } = firstChoice(event);
  if (!isFields(delta)) return [];
  const calls: unknown[] = Array.isArray(delta["tool_calls"]) ? delta["tool_calls"] : [];
  return [...textPieces(delta, TEXTS), ...calls.filter(isFields).flatMap(callPieces)];
}

const TEXTS = ["reasoning", "reasoning_content", "content", "refusal"];

/** A call's name comes once, with an id that the engine makes up; its arguments come in pieces. */
function callPieces(call: Fields): EventPiece[] {
  const { index, function: called } = call;
  if (!isFields(called)) return [];
  const pieces = textPieces(called, ["arguments"], `call ${String(index)} `);
  const { name } = called;
  if (typeof name !== "string") return pieces;
  const keep = (text: string): void => {
    if (text !== "") return;
    for (const field of ["id", "type"]) delete (call as Record<string, unknown>)[field];
    delete (called as Record<string, unknown>)["name"];
  };
  return [{ name: `call ${String(index)} name`, text: name, keep }, ...pieces];
}

function textPieces(holder: Fields, names: readonly string[], prefix = ""): EventPiece[] {
  return names.flatMap((name) => {
    const text = holder[name];
    const keep = (kept: string): void => void ((holder as Record<string, unknown>)[name] = kept);
    return typeof text === "string" && text !== "" ? [{ name: prefix + name, text, keep }] : [];
  });
}

const IGNORED = (): void => {};
/** Present once, whatever ids the engine gave it. */
const marker = (name: string, text = "x"): EventPiece => ({ name, text, keep: IGNORED });

/** Why the answer ended, once it has. */
const endPieces = (reason: unknown): EventPiece[] => (typeof reason === "string" ? [marker("end", reason)] : []);

function messagePieces(event: Fields): EventPiece[] {
  const { type, index, delta, content_block: block } = event;
  const of = `block ${String(index)} `;
  if (type === "content_block_start" && isFields(block))
    return [marker(`${of}begins`, `${String(block["type"])} ${String(block["name"])}`)];
  if (type === "message_delta" && isFields(delta)) return endPieces(delta["stop_reason"]);
  if (type === "content_block_stop") return [marker(`${of}ends`)];
  if (type !== "content_block_delta" || !isFields(delta)) return [];
  if (delta["type"] === "signature_delta") return [marker(`${of}signature`)];
  return textPieces(delta, ["text", "thinking", "partial_json"], of);
}

function responsePieces(event: Fields): EventPiece[] {
  const { type, output_index: item, content_index: part } = event;
  if (typeof type !== "string" || !type.startsWith("response.") || WHOLE.has(type)) return [];
  const of = `${String(item)} ${String(part)} ${type} `;
  return type.endsWith(".delta") ? textPieces(event, ["delta"], of) : [marker(of)];
}

/** Events about the whole response. */
const WHOLE = new Set(["response.created", "response.in_progress", "response.completed", "response.incomplete"]);
