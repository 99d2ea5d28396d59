import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import type { ChainEnd } from "../tokenizer/text/chain-state.ts";
import type { AnswerIndexer } from "./answer-indexer.ts";
import type { AnswerReader, AnswerReport } from "./answer-reader.ts";
import { valueAt, type Usage } from "./answer-json.ts";
import type { Words } from "../tokenizer/text/word-source.ts";

/** Why the tokens of an answer were not found out. */
export type UnknownAnswer =
  /** The engine did not count them, or the client left. */
  | "uncounted"
  /** The engine counted another prompt than the gateway. */
  | "prompt"
  /** There is more in it than one text, or none, or it ended otherwise than by itself or by its length. */
  | "parts"
  /** Its text is longer than is kept. */
  | "long"
  /** Too many wait. */
  | "full"
  /** The event loop has little time to spare. */
  | "busy"
  /** The tokenizer gave up. */
  | "tokenizer"
  /** Its text becomes another number of tokens than the engine counted. */
  | "count";

/** What an answer of text is read for. */
export interface TextAsked {
  /** Of a chat's message or delta, or of a completion's choice. */
  readonly dialect: "chat" | "completions";
  readonly end: ChainEnd;
  readonly promptTokens: number;
  readonly words: (text: string) => Words;
  readonly bytesMax: number;
  readonly queue: AnswerIndexer;
  readonly counters: GatewayCounters;
}

/**
 * The text of one answer of one choice, kept as the JSON that it came in: once the request has ended it becomes tokens
 * again. They are what the engine generated where they are as many as it counted, as they are nearly always with a
 * trained model.
 */
export class AnswerText implements AnswerReader {
  readonly #asked: TextAsked;
  readonly #name: Buffer;
  #text: Buffer = Buffer.allocUnsafe(BYTES_MIN);
  #length = 0;
  #unknown: UnknownAnswer | undefined;
  /** The last event, or the whole answer, which has how it ended. */
  #last: Buffer = EMPTY;
  #lastStart = 0;
  #lastEnd = 0;

  constructor(asked: TextAsked) {
    this.#asked = asked;
    this.#name = asked.dialect === "chat" ? CONTENT : TEXT;
  }

  reset(): void {
    this.#length = 0;
    this.#unknown = undefined;
    this.#last = EMPTY;
  }

  event(bytes: Buffer, start: number, end: number): void {
    this.#last = bytes;
    this.#lastStart = start;
    this.#lastEnd = end;
    if (this.#unknown !== undefined) return;
    // An event without text has a role or an end, or is of something else.
    if (!this.#take(bytes, start, end) && hasOtherParts(bytes, start, end)) this.#unknown = "parts";
  }

  whole(body: Buffer): void {
    this.event(body, 0, body.length);
    if (hasOtherParts(body, 0, body.length)) this.#unknown ??= "parts";
  }

  ended(requestId: string, usage: Usage | undefined): AnswerReport {
    const { end, queue, counters, words } = this.#asked;
    const counted = usage?.outputTokens;
    const ends = this.#ends();
    const unknown = this.#unknown ?? (counted === undefined ? "uncounted" : this.#unsound(usage, ends));
    if (unknown !== undefined) {
      countUp(counters.answersUnknown, unknown);
      return {};
    }
    if (!end.fills(counted! - 1)) return {};
    const json = this.#text.subarray(0, this.#length);
    const taken = queue.add({ requestId, json, outputTokens: counted!, isStopped: ends === "stop", end, words });
    return taken ? { answerFollows: true } : {};
  }

  #unsound(usage: Usage | undefined, ends: "stop" | "length" | undefined): UnknownAnswer | undefined {
    const { promptTokens } = this.#asked;
    if ((usage?.promptTokens ?? promptTokens) !== promptTokens) return "prompt";
    return ends === undefined || this.#length === 0 ? "parts" : undefined;
  }

  /** Takes the first string under the name; false where there is none or it is empty. */
  #take(json: Buffer, start: number, end: number): boolean {
    let at = valueAt(json, this.#name, start, end);
    // Beside a message's own content there is that of its log-probabilities, a list.
    while (at >= 0 && json[at] !== QUOTE) at = valueAt(json, this.#name, at, end);
    if (at < 0) return false;
    const from = at + 1;
    let to = json.indexOf(QUOTE, from);
    while (to >= 0 && to < end && isEscaped(json, from, to)) to = json.indexOf(QUOTE, to + 1);
    if (to < 0 || to >= end || to === from) return false;
    this.#keep(json, from, to);
    return true;
  }

  #keep(json: Buffer, from: number, to: number): void {
    const length = this.#length + to - from;
    if (length > this.#asked.bytesMax) {
      this.#unknown = "long";
      this.#text = EMPTY;
      this.#length = 0;
      return;
    }
    if (length > this.#text.length) {
      const wide = Buffer.allocUnsafe(Math.min(this.#asked.bytesMax, 2 * length));
      wide.set(this.#text.subarray(0, this.#length));
      this.#text = wide;
    }
    json.copy(this.#text, this.#length, from, to);
    this.#length = length;
  }

  #ends(): "stop" | "length" | undefined {
    const at = valueAt(this.#last, FINISH_REASON, this.#lastStart, this.#lastEnd);
    if (at < 0) return undefined;
    const value = this.#last.toString("latin1", at, at + LENGTH_VALUE.length);
    if (value.startsWith(STOP_VALUE)) return "stop";
    return value === LENGTH_VALUE ? "length" : undefined;
  }
}

const EMPTY = Buffer.alloc(0);
const BYTES_MIN = 512;
const CONTENT = Buffer.from('"content"');
const TEXT = Buffer.from('"text"');
const FINISH_REASON = Buffer.from('"finish_reason"');
const STOP_VALUE = '"stop"';
const LENGTH_VALUE = '"length"';
/** What else a model writes, by the names that engines have for it. */
const OTHER_PARTS = ['"reasoning_content"', '"reasoning"', '"tool_calls"', '"function_call"', '"audio"'].map((name) =>
  Buffer.from(name),
);
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_N = 0x6e;
const BRACKET_CLOSED = 0x5d;

function isEscaped(json: Buffer, from: number, quote: number): boolean {
  let at = quote;
  while (at > from && json[at - 1] === BACKSLASH) at--;
  return (quote - at) % 2 === 1;
}

/** Some such part is neither null nor empty. */
function hasOtherParts(json: Buffer, start: number, end: number): boolean {
  return OTHER_PARTS.some((name) => {
    const at = valueAt(json, name, start, end);
    if (at < 0 || json[at] === LOWER_N) return false;
    const isEmpty = json[at + 1] === QUOTE || json[at + 1] === BRACKET_CLOSED;
    return json[at] === QUOTE || json[at] === BRACKET_OPEN ? !isEmpty : true;
  });
}

const BRACKET_OPEN = 0x5b;
