import type { Fault } from "#core/endpoint/fault.ts";

import type { AnswerJudgeReading } from "./answer-judge.ts";
import type { AnswerReader } from "./answer-reader.ts";
import type { ClientWriter } from "./client-writer.ts";
import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { AnswerHeaders } from "../http/headers.ts";
import type { GatewayLimits } from "../http/limits.ts";
import type { WholeOutcome } from "#core/path/path-event.ts";
import type { Carriage } from "#core/path/path-state.ts";
import type { Dialect } from "../http/route.ts";
import type { Usage } from "./answer-json.ts";

/** Reads one endpoint's answer piece by piece, decides what becomes of it, and writes what it holds when it is asked to. */
export interface Answer {
  readonly carriage: Carriage;
  data(chunk: Buffer): void;
  /**
   * Takes whole HTTP chunks from the beginning of bytes[0..to), as far as they can go to the client as they lie there.
   * Returns the place behind those that it took; the bytes are another read's once it returns.
   */
  chunks?(bytes: Buffer, to: number): number;
  /** The endpoint's message is whole. */
  ended(): void;
  /** Writes the head without a body. */
  showHead(): void;
  /** Writes all that is held, behind the head where the client has none; a whole answer with its end. */
  writeHeld(): void;
  /** Counted once the answer is over. */
  counts(): AnswerCounts;
}

/** The head of an endpoint's answer. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: AnswerHeaders;
}

/** An error that an endpoint answered, whole, to be passed on if no other endpoint does better. */
export interface KeptAnswer extends AnswerHead {
  readonly body: Buffer;
}

export interface AnswerCounts {
  readonly usage: Usage | undefined;
  /** Output tokens counted in the stream; undefined where the answer did not stream. */
  readonly tokensSeen: number | undefined;
  /** Id of an answer of /v1/responses, which its engine may have stored. */
  readonly responseId?: string | undefined;
}

/**
 * Where an answer is, for the answer itself. held: nothing goes out. due: what is held may go out. passing: the client has
 * bytes of it. over: it is complete, was cut, or is not wanted any more.
 */
export type DeliveryState = "held" | "due" | "passing" | "over";

/** Keeps of a stream what it needs to go on elsewhere, and from the client what only that needs. */
export interface TokenReader {
  /** `readTokens` does for an event that has nothing but text and ids. */
  readonly readsTokens: boolean;
  /** The client has the counts, or is not to have them. */
  counted: boolean;
  /** Reads an event; returns the place of what the client is not to get. */
  read(bytes: Buffer, start: number, end: number): readonly [number, number] | undefined;
  /** The same of an event that has nothing but text and ids. */
  readTokens(bytes: Buffer, start: number, end: number, tokens: EventTokens): void;
}

/** Where an event has its tokens. */
export interface EventTokens {
  /** The bracket that opens the list of their ids; -1 where it has none. */
  readonly bracket: number;
  readonly hasText: boolean;
}

/** Output that came in one event. */
export interface EventOutput {
  readonly ids: readonly number[];
  readonly text: string;
}

/** Reads the events that go to the client, in bytes[start..end). */
export interface EventReader {
  read(bytes: Buffer, start: number, end: number): void;
}

/** What an answer may ask of the request that it belongs to. */
export interface Delivery {
  readonly writer: ClientWriter;
  readonly limits: GatewayLimits;
  readonly counters: GatewayCounters;
  readonly dialect: Dialect;
  readonly state: DeliveryState;
  /** The usage chunk was asked for by the gateway, and the client must not see it. */
  readonly hidesUsage: boolean;
  /** Cached tokens to state in place of the engine's own count, where another one computed the prompt. */
  readonly cachedTokens: number | undefined;
  /** Where the tokens of the answer are to be found out. */
  readonly answerReader: AnswerReader | undefined;
  /** What is kept of a stream so that it can go on elsewhere; undefined where nothing is. */
  readonly keptTokens: TokenReader | undefined;
  /** The same of one that another engine would make again. */
  readonly keptEvents: EventReader | undefined;
  /** Judges the answer before its client has it; undefined where nobody does. */
  readonly judge: AnswerJudgeReading | undefined;
  /** The client has a part of a stream that could go on elsewhere. */
  readonly continues: boolean;
  /**
   * Headers for the client; the engine's content-length stays only where the body will have that length. Where the
   * engine's count of the prompt is known, no more of it is called cached.
   */
  headers(head: AnswerHead, keepLength: boolean, promptTokens?: number): string[];
  /** A piece as the client gets it, which may have asked for a model of another name; for what is written past `write`. */
  named(piece: Buffer): Buffer;
  /** Writes a piece, and stops reading from the endpoint while the client does not keep up. */
  write(piece: Buffer): void;
  /** Nothing but what is kept of the stream reads its events or changes them, and chunks can go out as they came. */
  readonly takesChunks: boolean;
  /** The same as `write`, of whole chunks. */
  writeChunks(bytes: Buffer, length: number): void;
  firstToken(): void;
  /** Output tokens so far; informs the router now and then. */
  progress(tokensSeen: number): void;
  /** What is held may go out without a token. */
  holdFull(): void;
  /** There are bytes to go out, the first of this answer: asks for them by `writeHeld`. */
  firstBytes(): void;
  /** It is too long to be held until it is whole: what came so far, and all that comes, goes through unread. */
  letThrough(head: AnswerHead, chunks: readonly Buffer[]): void;
  /** The mark of completion came. */
  marked(outcome: WholeOutcome): void;
  /** The endpoint's message is whole; without the mark that it promises it is cut. */
  completed(outcome: WholeOutcome, promisesMark: boolean): void;
  /**
   * The answer ended, and its end does not show whether the engine aborted it: the engine is asked. `then` is called once it is
   * known, unless the attempt is over by then.
   */
  proveEnd(then: (isWhole: boolean) => void): void;
  /**
   * How many of an event's tokens have so many code units of its text: the engine is asked. `then` is called once it is known,
   * unless the attempt is over by then.
   */
  tokensUpTo(length: number, event: EventOutput, then: (tokens: number) => void): void;
  /** The engine ended the answer with an error event of its own, which the client has. */
  engineError(): void;
  /** It broke; `event` is the engine's own error event where it sent one, which the client has not. */
  broke(fault: Fault, event?: Buffer): void;
  /** An endpoint at which a stream went on does not repeat what the client has: it is cut. */
  diverged(): void;
  /** The answer is no good and the client has seen none of it: another endpoint is tried, or an error is sent. */
  attemptFailed(fault: Fault, kept?: KeptAnswer): void;
}
