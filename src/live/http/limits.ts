import { STAGE_LIMITS, type StageLimits } from "#core/stages.ts";
import { PATH_RULES } from "#core/path/path-rules.ts";
import type { WaitLimits } from "#core/path/wait-verdict.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { BodyRules } from "./body-room.ts";
import type { JsonLimits } from "../base/json-scan.ts";

/**
 * Everything that the gateway holds or waits for has one of these bounds. Times are in milliseconds and are checked by a
 * sweep every `sweepMillis`, so that no request owns a timer.
 */
export interface GatewayLimits extends JsonLimits, StageLimits {
  /** One request body, in bytes; more is 413. */
  readonly bodyBytesMax: number;
  /** Messages of a chat, or input items of a response; more is 400, as it is for all bounds of a body's content. */
  readonly messagesMax: number;
  /** Parts of the contents of all messages. */
  readonly contentPartsMax: number;
  readonly toolsMax: number;
  /** Prompts of a completion, or inputs of an embedding. */
  readonly promptsMax: number;
  /** Request bodies held at once, in bytes, those that are still arriving among them; more is 429. */
  readonly bodyBytesInFlightMax: number;
  /** Of that, what bodies may hold before they are whole; no less than the largest body. */
  readonly bodyBytesArrivingMax: number;
  /** What bodies from one client address may hold of the latter, as a share; no less than the largest body. */
  readonly bodyShareMax: number;
  /** Bytes a second; a body that comes slower for a minute is cut, 0 for none. */
  readonly bodyBytesPerSecondMin: number;
  /** Requests between their head and their last byte; more is 503. */
  readonly requestsInFlightMax: number;
  /** Requests of one connection that wait for the answers before theirs; a connection with more is cut. */
  readonly pipelinedRequestsMax: number;
  /** Client connections; more are closed at once. */
  readonly clientConnectionsMax: number;
  /** Sockets to one endpoint, which is also the most requests that it is given at once. */
  readonly upstreamConnectionsMax: number;
  /**
   * What the beginnings of chats may take, so that of a conversation that goes on only the new messages are read; 0 for
   * none.
   */
  readonly knownBodyBytesKept: number;
  /** Opening a connection to an endpoint. */
  readonly connectMillisMax: number;
  /** From the arrival to the first body byte, for requests that stream. */
  readonly firstByteMillisMax: number;
  /** Between two pieces of a body. */
  readonly idleMillisMax: number;
  /** From the arrival to the last byte; also bounds answers that do not stream. */
  readonly totalMillisMax: number;
  /**
   * A request of which the client has seen nothing, at an engine that is lost: where another may take it, it goes there
   * at once; where none may, it is answered with an error after so long.
   */
  readonly lostMillisMax: number;
  /**
   * Silence of an answer that began, at an engine that is lost or hung, where it cannot go on elsewhere and another
   * engine may serve its client anew; it is cut then. Where none may, `idleMillisMax` alone bounds it.
   */
  readonly cutMillisMax: number;
  /** The same of a stream that can go on at another engine; it is sent there then. */
  readonly continueMillisMax: number;
  /**
   * Without a token at a busy engine to which a fault elsewhere moved a request, while another one stands idle, until it
   * moves again; twice as long each time.
   */
  readonly moveAgainMillis: number;
  /** Time after which a client that reads nothing while bytes wait for it is disconnected. */
  readonly writeStallMillisMax: number;
  /** Head of a request. */
  readonly headersMillisMax: number;
  /** Head and body of a request. */
  readonly requestReadMillisMax: number;
  /** Kept connections of clients; above a load balancer's idle limit. */
  readonly clientKeepAliveMillis: number;
  /** Kept connections to endpoints; below vLLM's 5 s. */
  readonly upstreamKeepAliveMillis: number;
  /** An answer that does not stream is held back and inspected up to this many bytes. */
  readonly answerBytesInspected: number;
  /**
   * Bytes that all clients together have yet to read; beyond that no more of answers in one piece is read from engines,
   * and who has not read for longest is cut.
   */
  readonly answerBytesUnreadMax: number;
  /** An error answer is kept for passing on up to this many bytes. */
  readonly errorBytesKept: number;
  /** One server-sent event is inspected up to this many bytes; more of it passes unread. */
  readonly eventBytesInspected: number;
  /**
   * Token ids kept of one answer whose client asked for them; of those beyond, no blocks are known. Of a text that is to
   * become tokens again, 6 bytes for each; of a longer one, no blocks are known at all.
   */
  readonly answerTokensKept: number;
  /** Texts of answers that wait to become tokens; more are left alone. */
  readonly answersWaitingMax: number;
  /** Events before the first token are held back up to this many bytes. */
  readonly holdBytesMax: number;
  /** After this long the answer's head goes out without a body; undefined holds it until the first body byte. */
  readonly holdMillis: number | undefined;
  /** Output tokens between two progress inputs of a request. */
  readonly progressTokens: number;
  /** Time between two progress inputs of a request whose output is slower than that. */
  readonly progressMillis: number;
  readonly sweepMillis: number;
}

const MIB = 1024 * 1024;
const MINUTE = 60_000;
const MILLIS_PER_SECOND = 1_000;
const { waits, sweepMicros } = PATH_RULES;
const millis = (micros: Micros): number => micros / MICROS_PER_MILLI;

export const DEFAULT_LIMITS: GatewayLimits = {
  bodyBytesMax: 16 * MIB,
  jsonDepthMax: 128,
  jsonKeysMax: 32_768,
  jsonFieldsMax: 256,
  jsonItemsMax: 65_536,
  jsonValuesMax: 2_097_152,
  messagesMax: 10_000,
  contentPartsMax: 20_000,
  toolsMax: 2_048,
  promptsMax: 4_096,
  bodyBytesInFlightMax: 1024 * MIB,
  bodyBytesArrivingMax: 256 * MIB,
  bodyShareMax: 0.5,
  bodyBytesPerSecondMin: 1_000,
  requestsInFlightMax: 16_384,
  pipelinedRequestsMax: 16,
  clientConnectionsMax: 32_768,
  upstreamConnectionsMax: 4_096,
  knownBodyBytesKept: 16 * MIB,
  ...STAGE_LIMITS,
  connectMillisMax: 5_000,
  firstByteMillisMax: millis(waits.firstByteMicrosMax),
  idleMillisMax: millis(waits.idleMicrosMax),
  totalMillisMax: millis(waits.totalMicrosMax),
  lostMillisMax: millis(waits.lostMicrosMax),
  cutMillisMax: millis(waits.cutMicrosMax),
  continueMillisMax: millis(waits.continueMicrosMax),
  moveAgainMillis: millis(waits.moveAgainMicros),
  writeStallMillisMax: millis(waits.writeStallMicrosMax),
  headersMillisMax: MINUTE,
  requestReadMillisMax: 5 * MINUTE,
  clientKeepAliveMillis: 75_000,
  upstreamKeepAliveMillis: 4_000,
  answerBytesInspected: 4 * MIB,
  answerBytesUnreadMax: 128 * MIB,
  errorBytesKept: 64 * 1024,
  eventBytesInspected: MIB,
  answerTokensKept: 32_768,
  answersWaitingMax: 256,
  holdBytesMax: 64 * 1024,
  holdMillis: undefined,
  progressTokens: 64,
  progressMillis: 1_000,
  sweepMillis: millis(sweepMicros),
};

/** The room for bodies. One gives way that would not be whole in time at its rate, were it as long as may be. */
export function bodyRules(limits: GatewayLimits): BodyRules {
  const { bodyBytesInFlightMax: bytesMax, bodyBytesMax } = limits;
  const arrivingMax = Math.min(bytesMax, Math.max(limits.bodyBytesArrivingMax, bodyBytesMax));
  return {
    bytesMax,
    arrivingMax,
    networkMax: Math.min(bytesMax, Math.max(arrivingMax * limits.bodyShareMax, bodyBytesMax)),
    bytesPerSecondMin: limits.bodyBytesPerSecondMin,
    bytesPerSecondKept: (limits.bodyBytesMax / limits.requestReadMillisMax) * MILLIS_PER_SECOND,
  };
}

/** How long requests are waited for, as the core counts. */
export function waitLimits(limits: GatewayLimits): WaitLimits {
  return {
    totalMicrosMax: limits.totalMillisMax * MICROS_PER_MILLI,
    firstByteMicrosMax: limits.firstByteMillisMax * MICROS_PER_MILLI,
    idleMicrosMax: limits.idleMillisMax * MICROS_PER_MILLI,
    lostMicrosMax: limits.lostMillisMax * MICROS_PER_MILLI,
    cutMicrosMax: limits.cutMillisMax * MICROS_PER_MILLI,
    continueMicrosMax: limits.continueMillisMax * MICROS_PER_MILLI,
    moveAgainMicros: limits.moveAgainMillis * MICROS_PER_MILLI,
    writeStallMicrosMax: limits.writeStallMillisMax * MICROS_PER_MILLI,
  };
}
