import type { EventTokens } from "../answer/answer.ts";
import type { AnswerReport } from "../answer/answer-reader.ts";
import type { ContinuationPlan, UnfitRequest } from "./continuation-plan.ts";
import type { ChainEnd } from "../tokenizer/text/chain-state.ts";
import { eventData } from "../answer/sse-scanner.ts";
import { matchesAt, valueAt } from "../answer/answer-json.ts";
import { type Fields, isFields } from "../base/fields.ts";

/**
 * What is kept of a stream while it passes, so that it can go on where it breaks: the ids of its prompt and of its answer,
 * and the last place between two tokens at which another engine can begin.
 *
 * An event in the form that vLLM writes costs a comparison of some 50 bytes and its digits (no object is made); any other
 * is read as JSON.
 */
export class KeptStream {
  readonly plan: ContinuationPlan;
  readonly #options: KeptStreamOptions;
  readonly #finder: SeamFinder;
  #tokens = new TokenList();
  #prompt: Int32Array | undefined;
  #heldBytes = 0;
  /** Offset of the text's opening quote from an event's beginning, where all events so far had it. */
  #textAt = -1;
  #name: StreamName | undefined;
  #inParts = false;
  /** Output tokens up to the last event that had text. */
  #textTokens = 0;
  #unfit: UnfitStream | undefined;
  /** In place of ids, where the engine sends none and the text may do. */
  #byText: KeptText | undefined;
  /** Of the prompt; 0 while that is not known. */
  promptTokens = 0;
  /** The model has ended: only counts and the mark of completion may be missing. */
  ended = false;
  /** The client has the counts, or is not to have them. */
  counted = false;
  /** Tokens that went before the endpoint at hand. */
  continuedTokens = 0;
  continuations = 0;
  /** Ids that the client has and that come again. */
  idsAgain = 0;
  /** Text before the seam that was held back for stop strings, and where that seam is. */
  #owed: { readonly text: string; readonly tokens: number } | undefined;
  /** The last characters that the client has, where a stop string may have begun in them. */
  lastText = "";

  constructor(options: KeptStreamOptions) {
    this.#options = options;
    this.plan = options.plan;
    this.#finder = new SeamFinder(heldBackOf(options.plan));
    this.#account();
  }

  get prompt(): Int32Array {
    return this.#prompt ?? new Int32Array(0);
  }
  get name(): StreamName | undefined {
    return this.#name;
  }
  /** Output tokens of all endpoints. */
  get outputTokens(): number {
    return this.#byText?.tokens ?? this.#tokens.length;
  }
  get seam(): Seam {
    return this.#byText?.seam ?? this.#finder.seam;
  }
  /** The answer so far, where the stream goes on behind its text; undefined where it does behind its ids. */
  get text(): string | undefined {
    return this.#byText?.text;
  }
  tokensBefore(seam: Seam): Int32Array {
    return this.#tokens.first(seam.tokens);
  }

  /** Blocks that the first tokens of the answer fill behind the prompt's; undefined where they fill none. */
  blocksOf(tokens: number): Int32Array | undefined {
    const hashes = this.#options.end?.hashesBehind(this.#tokens.first(tokens));
    return hashes === undefined || hashes.length === 0 ? undefined : hashes;
  }

  /** What the end of a request reports of the whole answer. The last token was sampled and never computed. */
  answer(): AnswerReport {
    const answerHashes = this.blocksOf(this.outputTokens - 1);
    return answerHashes === undefined ? {} : { answerHashes };
  }

  /** Why the stream cannot go on where it is; undefined where it can, or where no engine is needed for what is missing. */
  get unfit(): UnfitStream | undefined {
    if (this.ended) return undefined;
    if (this.#unfit !== undefined) return this.#unfit;
    if (this.#name === undefined || (this.#prompt ?? this.#byText) === undefined) return "no-ids";
    if (this.#inParts) return "reasoning";
    if (this.plan.greedy || this.#byText !== undefined) return undefined;
    const { tokens, behind } = this.seam;
    if (this.plan.showsIds && tokens < this.outputTokens) return "seam";
    return behind !== "" && this.unsettled === undefined && !this.#owesMore ? "seam" : undefined;
  }

  /**
   * The last tokens of a sampled answer of which it is not known whether all their text went out: they came in one event,
   * and only a part of a character can be held back at their end; or text is held back for stop strings. Undefined where
   * that is known.
   */
  get unsettled(): Int32Array | undefined {
    const { tokens, behind } = this.seam;
    if (this.plan.greedy || behind === "" || this.#owesMore) return undefined;
    const to = this.#holdsBack ? this.#tokens.length : this.#textTokens;
    // What is held back is known by the text of all tokens behind the seam, else by that of the last ones.
    if (this.#holdsBack && to - tokens > HELD_TOKENS_ASKED_MAX) return undefined;
    return this.#tokens.first(to).subarray(this.#holdsBack ? tokens : Math.max(tokens, to - TOKENS_ASKED_MAX));
  }

  /** `text` is that of the unsettled tokens, of which the last ones end inside a character. False where it is another. */
  settle(heldBack: number, text: string): boolean {
    const { behind } = this.seam;
    const made = (this.owed ?? "") + text;
    if (this.#holdsBack && !made.startsWith(behind)) return false;
    this.#finder.whole((this.#holdsBack ? this.#tokens.length : this.#textTokens) - heldBack);
    if (this.#holdsBack) this.#owed = { text: made.slice(behind.length), tokens: this.seam.tokens };
    return true;
  }

  /** Text that the client is to get before what is made behind the seam; undefined where it has all. */
  get owed(): string | undefined {
    return this.#owed?.tokens === this.seam.tokens ? this.#owed.text : undefined;
  }

  /** All that went out behind the seam was owed. */
  get #owesMore(): boolean {
    return this.owed?.startsWith(this.seam.behind) === true;
  }

  get #holdsBack(): boolean {
    return this.plan.stops.length > 0 && !this.plan.includesStop;
  }

  /** Another endpoint answers anew. */
  reset(): void {
    if (this.#unfit !== undefined && this.#unfit !== "no-ids") return;
    this.#unfit = undefined;
    this.#byText?.close();
    this.#byText = undefined;
    this.#tokens.truncate(0);
    this.#prompt = undefined;
    this.#name = undefined;
    this.#finder.whole(0);
    this.#finder.resume(heldBackOf(this.plan));
    this.#textAt = -1;
    this.#textTokens = 0;
    this.#inParts = false;
    this.promptTokens = 0;
    this.ended = false;
    this.counted = false;
    this.lastText = "";
    this.#owed = undefined;
    this.#account();
  }

  /** Nothing is kept any more. */
  close(): void {
    this.#byText?.close();
    this.#options.hold(-this.#heldBytes);
    this.#heldBytes = 0;
    this.#tokens = new TokenList();
    this.#prompt = undefined;
    this.#unfit = "no-ids";
  }

  /**
   * Reads an event of the first endpoint in bytes[start..end), and hides ids that the client did not ask for. Returns
   * where a list of the prompt's ids begins that is to be left out, and where it ends; undefined where there is none.
   */
  read(bytes: Buffer, start: number, end: number): readonly [number, number] | undefined {
    const bracket = this.readsTokens ? idsAtEnd(bytes, start, end, BEFORE_IDS[this.plan.dialect]) : -1;
    const quote = start + this.#textAt;
    if (bracket < 0 || bytes[quote] !== QUOTE || bytes[quote - 1] !== COLON) return this.#readSlowly(bytes, start, end);
    this.readTokens(bytes, start, end, { bracket, hasText: bytes[quote + 1] !== QUOTE });
    return undefined;
  }

  /** What events have beside text and ids is known, and their text goes out as it comes. */
  get readsTokens(): boolean {
    return this.#textAt >= 0 && this.plan.stops.length === 0;
  }

  /** The same of an event of which it is known where the list of its ids opens, and that it has nothing else but text. */
  readTokens(bytes: Buffer, start: number, end: number, { bracket, hasText }: EventTokens): void {
    const { dialect, showsIds } = this.plan;
    if (this.#unfit !== undefined) return showsIds ? undefined : hideIds(bytes, bracket);
    const before = this.#tokens.length;
    const behind = readIds(bytes, bracket, this.#push);
    const count = this.#tokens.length;
    if (count !== before + 1) {
      const facts = eventFacts(bytes, start, end, dialect);
      this.#finder.add(count - before, count, facts?.text ?? "", facts?.text ?? "");
      if (facts?.text !== "") this.#textTokens = count;
    } else if (hasText) {
      this.#finder.whole(count);
      this.#textTokens = count;
      this.#inParts = false;
    }
    if (!showsIds) blankIds(bytes, bracket, behind);
    this.#look();
  }

  /** Output of an endpoint at which the stream went on, behind `owed`: of the text of both, `shown` reached the client. */
  goOn(ids: readonly number[], owed: string, text: string, shown: string): void {
    if (this.#byText !== undefined) return this.#keepText(shown);
    for (const id of ids) this.#push(id);
    this.idsAgain = Math.max(0, this.idsAgain - ids.length);
    this.#finder.owe(owed);
    this.#finder.add(ids.length, this.#tokens.length, text, shown);
    if (text !== "") this.#textTokens = this.#tokens.length;
    this.lastText = beginningOfStop(this.plan, this.lastText + shown);
    this.#look();
  }

  /** It goes on at another endpoint, behind the seam. */
  resume(): void {
    const { tokens, behind } = this.seam;
    if (this.#owed !== undefined && this.#owesMore) {
      this.#owed = { text: this.#owed.text.slice(behind.length), tokens };
      this.#finder.whole(tokens);
    }
    if (this.#byText === undefined) this.idsAgain = this.#tokens.length - tokens + this.idsAgain;
    this.#tokens.truncate(tokens);
    // An engine whose text goes behind what is owed sends it at once.
    this.#finder.resume(this.owed === undefined ? heldBackOf(this.plan) : 0);
    this.continuedTokens = tokens;
    this.continuations++;
  }

  #readSlowly(bytes: Buffer, start: number, end: number): readonly [number, number] | undefined {
    const facts = eventFacts(bytes, start, end, this.plan.dialect);
    if (facts === undefined) return undefined;
    const listed = facts.promptIdsAt < 0 ? undefined : idsOf(bytes, facts.promptIdsAt);
    this.#name ??= facts.name;
    this.ended ||= facts.ended;
    if (this.#unfit === undefined) {
      this.#prompt ??= listed?.ids;
      this.promptTokens = this.#prompt?.length ?? 0;
      this.#take(facts);
      this.#look();
    }
    const hides = !this.plan.showsIds;
    for (const at of hides ? facts.idsAt : []) hideIds(bytes, at);
    if (facts.textAt > 0 && facts.text !== "") this.#textAt = facts.textAt - start;
    return hides && listed !== undefined ? [facts.promptIdsAt, listed.behind] : undefined;
  }

  #take({ ids, text, otherPart }: EventFacts): void {
    if (otherPart === "tool_calls") this.#unfit = "tools";
    else if (otherPart !== undefined) this.#inParts = true;
    if (text !== "") {
      // What an engine holds back for stop strings it holds back of all text, whatever part it becomes.
      if (this.#inParts && this.plan.stops.length > 0) this.#unfit = "reasoning";
      this.#inParts = false;
      // Output before the prompt's ids came, or without ids of its own.
      const { byText, hold } = this.#options;
      if (ids === undefined && byText !== undefined && this.#tokens.length === 0) {
        this.#byText ??= new KeptText(hold);
        this.promptTokens = byText.promptTokens;
      } else if (ids === undefined || this.#prompt === undefined) this.#unfit ??= "no-ids";
    }
    if (this.#byText !== undefined) return this.#keepText(text);
    for (const id of ids ?? []) this.#push(id);
    this.#finder.add(ids?.length ?? 0, this.#tokens.length, text, text);
    if (text !== "") this.#textTokens = this.#tokens.length;
    this.lastText = beginningOfStop(this.plan, this.lastText + text);
  }

  #keepText(text: string): void {
    this.lastText = beginningOfStop(this.plan, this.lastText + text);
    if (this.#byText?.add(text) === false) this.#giveUp("room");
    else if (this.outputTokens > this.#options.tokensMax) this.#giveUp("long");
  }

  readonly #push = (id: number): void => this.#tokens.push(id);

  #look(): void {
    if (this.#unfit !== undefined) return;
    if (this.#tokens.length + (this.#prompt?.length ?? 0) > this.#options.tokensMax) this.#giveUp("long");
    else if (this.#tokens.bytes + (this.#prompt?.byteLength ?? 0) !== this.#heldBytes) this.#account();
  }

  /** Counts what is kept; a stream for which there is no room is not kept. */
  #account(): void {
    const bytes = this.#tokens.bytes + (this.#prompt?.byteLength ?? 0);
    if (!this.#options.hold(bytes - this.#heldBytes)) return this.#giveUp("room");
    this.#heldBytes = bytes;
  }

  #giveUp(why: UnfitStream): void {
    this.close();
    this.#unfit = why;
  }
}

/** No event has more tokens that could matter: a character has at most four bytes. */
const TOKENS_ASKED_MAX = 16;
/** Where events have several tokens each, with stop strings, an answer has no seam at all. */
const HELD_TOKENS_ASKED_MAX = 4_096;
const COLON = 0x3a;

/** Token ids that grow at their end. */
class TokenList {
  #ids: Int32Array;
  length = 0;

  constructor(room: number = TOKENS_MIN) {
    this.#ids = new Int32Array(Math.max(1, room));
  }

  /** What it takes of memory. */
  get bytes(): number {
    return this.#ids.byteLength;
  }

  push(id: number): void {
    if (this.length === this.#ids.length) {
      const wide = new Int32Array(2 * this.length);
      wide.set(this.#ids);
      this.#ids = wide;
    }
    this.#ids[this.length++] = id;
  }

  /** Those up to `count` alone. */
  truncate(count: number): void {
    this.length = Math.min(this.length, count);
  }

  /** The first ones; a view that later ids do not change. */
  first(count: number): Int32Array {
    return this.#ids.subarray(0, Math.max(0, Math.min(count, this.length)));
  }
}

const TOKENS_MIN = 64;

/**
 * Why a stream cannot go on.
 * - sampled: its route has no form for ids, and another draw would not repeat it
 * - no-ids: its engine does not send token ids, and its text does not do in their place
 * - long, room: it has more tokens than are kept of one stream, or of all
 * - reasoning: it broke inside what a parser of the engine makes of the model's text
 * - seam: it broke between tokens that went out together, of an answer that another draw would not repeat
 */
export type UnfitStream = UnfitRequest | "sampled" | "no-ids" | "long" | "room" | "reasoning" | "seam";

interface KeptStreamOptions {
  readonly plan: ContinuationPlan;
  /**
   * It may go on behind its text where its engine sends no ids; its prompt's tokens, 0 where they are not known for
   * sure.
   */
  readonly byText: { readonly promptTokens: number } | undefined;
  /** Where the chain of the prompt's blocks ends, where it is known. */
  readonly end: ChainEnd | undefined;
  /** Prompt and answer together. */
  readonly tokensMax: number;
  /** Asked before so many bytes more are kept, or fewer where negative; false where there is no room for them. */
  readonly hold: (bytes: number) => boolean;
}

/** What names a stream for its client, as the first event has it. */
export interface StreamName {
  readonly id: unknown;
  readonly object: unknown;
  readonly created: unknown;
  readonly model: unknown;
}

/** A place between two tokens of an answer, at which another engine can go on. */
export interface Seam {
  /** Output tokens before it. */
  readonly tokens: number;
  /** Text that the client has behind it: the continuation generates it again, and it is left out there. */
  readonly behind: string;
}

interface Boundary {
  readonly tokens: number;
  /** Code points before it, from the seam that is known so far. */
  readonly at: number;
}

/**
 * Finds the last place in an answer where all text of the tokens before it has reached the client.
 *
 * A token is not always text at once. An engine holds a token back that ends inside a character, and with stop strings
 * the last characters that may begin one. To go on behind a token that was held back would lose its text; worse, an
 * engine whose prompt ends inside a character sends the whole prompt as text once the character is complete (as
 * Hugging Face's DecodeStream does). Hence a place counts only behind an event of a single token with which the text grew:
 * of several tokens in one event, the last may be held back.
 */
class SeamFinder {
  /** Code points that the engine at hand holds back of all text, for stop strings. */
  #heldBack: number;
  #tokens = 0;
  /** Code points that the client has, and that the engine at hand has made, from the seam on. */
  #shown = 0;
  #made = 0;
  #behind = "";
  #boundaries: Boundary[] = [];

  constructor(heldBack: number) {
    this.#heldBack = heldBack;
  }

  get seam(): Seam {
    return { tokens: this.#tokens, behind: this.#behind };
  }

  /** All text of so many tokens has reached the client. */
  whole(tokens: number): void {
    this.#tokens = tokens;
    this.#shown = 0;
    this.#made = 0;
    this.#behind = "";
    this.#boundaries.length = 0;
  }

  /** Text of the engine before, which the one at hand does not make. */
  owe(text: string): void {
    this.#made += codePoints(text);
  }

  /** An event of `tokens` brought them to `count`, with text of the engine's, of which `shown` went to the client. */
  add(tokens: number, count: number, made: string, shown: string): void {
    this.#made += codePoints(made);
    this.#shown += codePoints(shown);
    this.#behind += shown;
    if (tokens === 1 && made !== "") this.#boundaries.push({ tokens: count, at: this.#made + this.#heldBack });
    let passed = -1;
    while (passed + 1 < this.#boundaries.length && this.#boundaries[passed + 1]!.at <= this.#shown) passed++;
    if (passed >= 0) this.#advance(this.#boundaries.splice(0, passed + 1)[passed]!);
  }

  /** Another engine goes on at the seam, which holds back so much. */
  resume(heldBack: number): void {
    this.#heldBack = heldBack;
    this.#made = 0;
    this.#boundaries.length = 0;
  }

  #advance({ tokens, at }: Boundary): void {
    this.#tokens = tokens;
    this.#shown -= at;
    this.#made -= at;
    this.#behind = Array.from(this.#behind).slice(at).join("");
    this.#boundaries = this.#boundaries.map((one) => ({ tokens: one.tokens, at: one.at - at }));
  }
}

/** As engines count text. */
function codePoints(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) if (isHigh(text.charCodeAt(i)) && isLow(text.charCodeAt(i + 1))) count--;
  return count;
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

interface StopAcross {
  readonly stop: string;
  /** Length of what of the new text belongs to the answer. */
  readonly length: number;
}

/** Code points that an engine holds back of all text, since a stop string may begin in them. */
function heldBackOf({ stops, includesStop }: Pick<ContinuationPlan, "stops" | "includesStop">): number {
  return includesStop || stops.length === 0 ? 0 : Math.max(...stops.map(codePoints)) - 1;
}

/** The last characters of a text in which a stop string may have begun; "" where none is looked for. */
function beginningOfStop(
  { stops, includesStop }: Pick<ContinuationPlan, "stops" | "includesStop">,
  text: string,
): string {
  if (!includesStop || stops.length === 0) return "";
  const longest = Math.max(...stops.map((one) => one.length));
  return longest < 2 ? "" : text.slice(1 - longest);
}

/**
 * A stop string that begins in what the client has and ends in `text`, where an answer ends with its stop string: the
 * endpoint that goes on sees only what it generates itself. Where answers end before theirs, no part of one was shown.
 */
export function stopAcross(
  { plan, lastText }: Pick<KeptStream, "plan" | "lastText">,
  text: string,
): StopAcross | undefined {
  if (lastText === "" || text === "") return undefined;
  const joined = lastText + text;
  let first: StopAcross | undefined;
  for (const stop of plan.stops) {
    const at = joined.indexOf(stop);
    if (at < 0 || at >= lastText.length) continue;
    const length = at + stop.length - lastText.length;
    if (length > 0 && (first === undefined || length < first.length)) first = { stop, length };
  }
  return first;
}

/** Bytes of a code unit, and how many of them are asked for at once. */
const UNIT_BYTES = 2;
const UNITS_AT_ONCE = 1_024;

/**
 * The text of an answer whose engine sends no token ids. Another engine can go on behind it as text, which it cuts into
 * tokens itself: where it cuts otherwise than the first engine made them, what follows may be another text than that one's.
 */
class KeptText {
  readonly #hold: (bytes: number) => boolean;
  #text = "";
  #heldUnits = 0;
  /** Events with text: an engine that makes several tokens in one step has more tokens than that. */
  tokens = 0;

  /** `hold` is asked before so many bytes more are kept, or fewer where negative; false where there is no room. */
  constructor(hold: (bytes: number) => boolean) {
    this.#hold = hold;
  }

  get text(): string {
    return this.#text;
  }

  /** All text that there is has reached the client. */
  get seam(): Seam {
    return { tokens: this.tokens, behind: "" };
  }

  /** More of the text, as the client has it. False where there is no room to keep it. */
  add(text: string): boolean {
    this.#text += text;
    if (text !== "") this.tokens++;
    if (this.#text.length <= this.#heldUnits) return true;
    const more = Math.max(UNITS_AT_ONCE, this.#text.length - this.#heldUnits);
    if (!this.#hold(UNIT_BYTES * more)) return false;
    this.#heldUnits += more;
    return true;
  }

  close(): void {
    this.#hold(-UNIT_BYTES * this.#heldUnits);
    this.#heldUnits = 0;
    this.#text = "";
  }
}

/** One event of a stream with one choice, as it is kept. */
export interface EventFacts {
  readonly name: StreamName;
  readonly text: string;
  /** Undefined where the engine sends none. */
  readonly ids: readonly number[] | undefined;
  /** What of the output is not text, by the engine's name for it. */
  readonly otherPart: string | undefined;
  /** The model has ended. */
  readonly ended: boolean;
  /** Brackets of lists of ids in the bytes, and of the prompt's; -1 where there is none. */
  readonly idsAt: readonly number[];
  readonly promptIdsAt: number;
  /** The text's opening quote; -1 where there is no text. */
  readonly textAt: number;
}

/** Reads an event of chat or completions in bytes[start..end); undefined where it holds none. */
export function eventFacts(
  bytes: Buffer,
  start: number,
  end: number,
  dialect: "chat" | "completions",
): EventFacts | undefined {
  const promptIdsAt = listAt(bytes, PROMPT_IDS, start, end);
  const event = eventData(withoutList(bytes, start, end, promptIdsAt));
  if (event === undefined) return undefined;
  const { id, object, created, model, choices } = event;
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const choice: Fields = isFields(first) ? first : {};
  const output: Fields = dialect === "chat" ? (isFields(choice["delta"]) ? choice["delta"] : {}) : choice;
  const textName = dialect === "chat" ? "content" : "text";
  const text = output[textName];
  const idsAt = listAt(bytes, IDS, start, end);
  const textAt = valueAt(bytes, TEXT_NAMES[dialect], start, end);
  return {
    name: { id, object, created, model },
    text: typeof text === "string" ? text : "",
    ids: idList(choice["token_ids"]),
    otherPart: OTHER_PARTS.find((name) => isPart(output[name])),
    ended: typeof choice["finish_reason"] === "string",
    idsAt: idsAt < 0 ? [] : [idsAt],
    promptIdsAt,
    textAt: bytes[textAt] === QUOTE ? textAt : -1,
  };
}

const OTHER_PARTS = ["tool_calls", "function_call", "reasoning", "reasoning_content", "refusal", "audio"] as const;
const TEXT_NAMES = { chat: Buffer.from('"content"'), completions: Buffer.from('"text"') } as const;
const IDS = Buffer.from('"token_ids"');
const PROMPT_IDS = Buffer.from('"prompt_token_ids"');
const NULL = Buffer.from("null");
const BRACKET = 0x5b;
const BRACKET_CLOSED = 0x5d;
const QUOTE = 0x22;

/** A prompt has thousands of ids, which cost less to read as bytes. */
function withoutList(bytes: Buffer, start: number, end: number, listAt: number): Buffer {
  if (listAt < 0) return bytes.subarray(start, end);
  const behind = bytes.indexOf(BRACKET_CLOSED, listAt) + 1;
  return Buffer.concat([bytes.subarray(start, listAt), NULL, bytes.subarray(behind, end)]);
}

function listAt(bytes: Buffer, name: Buffer, start: number, end: number): number {
  const at = valueAt(bytes, name, start, end);
  return at >= 0 && bytes[at] === BRACKET ? at : -1;
}

function idList(value: unknown): readonly number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const all: readonly unknown[] = value;
  return all.every((id): id is number => typeof id === "number" && Number.isSafeInteger(id) && id >= 0)
    ? all
    : undefined;
}

function isPart(value: unknown): boolean {
  if (typeof value === "string" || Array.isArray(value)) return value.length > 0;
  return isFields(value);
}

/**
 * Where the token ids lie of an event that has the form in which vLLM writes one of text that is not the last:
 * `"token_ids":[`, ids, `]}]}` at its end, behind what a dialect writes before that. -1 where it has another form.
 */
function idsAtEnd(bytes: Buffer, start: number, end: number, before: Buffer): number {
  let at = end - 1;
  while (at > start && bytes[at]! <= SPACE) at--;
  if (bytes[at] !== BRACE || bytes[at - 1] !== BRACKET_CLOSED || bytes[at - 2] !== BRACE) return -1;
  at -= 3;
  if (bytes[at] !== BRACKET_CLOSED) return -1;
  for (at--; isDigit(bytes[at]) || bytes[at] === COMMA; at--);
  const from = at + 1 - before.length;
  return from >= start && matchesAt(bytes, from, before) ? at : -1;
}

/** What stands before the ids, the bracket included. */
const BEFORE_IDS = {
  chat: Buffer.from('"logprobs":null,"finish_reason":null,"token_ids":['),
  completions: Buffer.from(
    '"logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":[',
  ),
} as const;

/** Reads the ids of a list that opens at `bracket`; hands on each, and returns the place behind the list. */
function readIds(bytes: Buffer, bracket: number, take: (id: number) => void): number {
  let at = bracket + 1;
  while (bytes[at] !== BRACKET_CLOSED && at < bytes.length) {
    if (!isDigit(bytes[at])) {
      at++;
      continue;
    }
    let id = 0;
    for (; isDigit(bytes[at]); at++) id = 10 * id + bytes[at]! - ZERO;
    take(id);
  }
  return at + 1;
}

/** All ids of a list that opens at `bracket`, and the place behind it. */
function idsOf(bytes: Buffer, bracket: number): { readonly ids: Int32Array; readonly behind: number } {
  // Each id but the first has a comma before it. Room by the list's bytes is five times what a prompt's ids take.
  let most = 1;
  for (let at = bracket + 1; at < bytes.length && bytes[at] !== BRACKET_CLOSED; at++) if (bytes[at] === COMMA) most++;
  const ids = new Int32Array(most);
  let count = 0;
  const behind = readIds(bytes, bracket, (id) => {
    ids[count++] = id;
  });
  return { ids: count === most ? ids : ids.slice(0, count), behind };
}

/** Hides the list that opens at `bracket`. */
function hideIds(bytes: Buffer, bracket: number): void {
  blankIds(
    bytes,
    bracket,
    readIds(bytes, bracket, () => {}),
  );
}

/** Writes null over a list, with spaces behind it, as an engine writes that was not asked for ids. */
function blankIds(bytes: Buffer, bracket: number, behind: number): void {
  const fits = behind - bracket >= NULL.length;
  for (let i = bracket; i < behind; i++) bytes[i] = SPACE;
  if (fits) for (let i = 0; i < NULL.length; i++) bytes[bracket + i] = NULL[i]!;
  else {
    bytes[bracket] = BRACKET;
    bytes[behind - 1] = BRACKET_CLOSED;
  }
}

const BRACE = 0x7d;
const COMMA = 0x2c;
const SPACE = 0x20;
const ZERO = 0x30;

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}
