import type { Fault } from "#core/endpoint/fault.ts";

import type { AnswerReader } from "./answer-reader.ts";
import type { ClientWriter } from "./client-writer.ts";
import type { GatewayCounters } from "../metrics/gateway-counters.ts";
import type { AnswerHeaders } from "../request/headers.ts";
import type { GatewayLimits } from "../request/limits.ts";
import type { Dialect } from "../request/route.ts";
import type { Usage } from "./usage.ts";

/** Takes one endpoint's answer, piece by piece, and carries it to the client. */
export interface Answer {
  data(chunk: Buffer): void;
  /** The endpoint's message is whole. */
  ended(): void;
  /** It broke, or a limit of ours ran out, after it began. */
  broke(fault: Fault): void;
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

/** How an answer ended, as far as it tells. */
export interface AnswerEnd {
  /** ok: complete. refused: the engine turned the request down. failed, timeout: cut, and the client was told. */
  readonly outcome: "ok" | "refused" | "failed" | "timeout";
  readonly usage: Usage | undefined;
  /** What cut it; left out where nothing did. */
  readonly fault?: Fault;
  /** Output tokens counted in the stream; undefined where the answer did not stream. */
  readonly tokensSeen: number | undefined;
}

/** What an answer may ask of the request that it belongs to. */
export interface Delivery {
  readonly writer: ClientWriter;
  readonly limits: GatewayLimits;
  readonly counters: GatewayCounters;
  readonly dialect: Dialect;
  /** The usage chunk was asked for by the gateway, and the client must not see it. */
  readonly hidesUsage: boolean;
  /** Where the tokens of the answer are to be found out. */
  readonly answerReader: AnswerReader | undefined;
  /**
   * Headers for the client; the engine's content-length stays only where the body will have that length. Where the
   * engine's count of the prompt is known, no more of it is called cached.
   */
  headers(head: AnswerHead, keepLength: boolean, promptTokens?: number): string[];
  /** Writes a piece, and stops reading from the endpoint while the client does not keep up. */
  write(piece: Buffer): void;
  firstToken(): void;
  /** Output tokens so far; tells the router now and then. */
  progress(tokensSeen: number): void;
  /** The answer is no good and the client has seen none of it: another endpoint is tried, or an error is sent. */
  attemptFailed(fault: Fault, kept?: KeptAnswer): void;
  /** The client has all that it will get. */
  finished(end: AnswerEnd): void;
}
