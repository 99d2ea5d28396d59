import type { BodyRoom } from "../http/body-room.ts";
import type { Fault } from "#core/endpoint/fault.ts";

import type { WaitLimits } from "#core/path/wait-verdict.ts";
import type { AnswersIndexed } from "../answer/choose-reader.ts";
import type { AnswerQueue } from "../answer/answer-queue.ts";
import type { ServingChecks } from "../beside/serving-checks.ts";
import type { StoredResponses } from "../beside/stored-responses.ts";
import type { ClientConnections } from "./client-connections.ts";
import type { Cascades } from "../cascade/cascades.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { ModelRewrites } from "../discovery/workload-rules.ts";
import type { Refusal } from "../http/errors.ts";
import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { Cors } from "../http/cors.ts";
import type { Identifier } from "../http/identity.ts";
import type { EngineFields } from "../request/engine-fields.ts";
import type { FaultEvent } from "../log/fault-log.ts";
import type { OpenFiles } from "./open-files.ts";
import type { InFlight } from "../http/in-flight.ts";
import type { RequestRouter } from "../routing/request-router.ts";
import type { UnreadAnswers } from "../answer/unread-answers.ts";
import type { KnownBodies } from "../request/known-bodies.ts";
import type { GatewayLimits } from "../http/limits.ts";
import type { SloRules } from "../request/slo-rules.ts";
import type { AttemptWatch } from "../keeper/attempt-watch.ts";
import type { RequestSummary } from "../log/request-summary.ts";
import type { RequestSpans } from "../tracing/request-spans.ts";
import type { Tokenizer } from "../tokenizer/text/tokenizer.ts";
import type { UpstreamPools } from "../upstream/connection/upstream-pools.ts";

/** Is notified of what became of requests, for metrics and logs. It must return at once and never throw. */
export interface RequestObserver {
  /** Once per inference request, refused ones included, when its answer is over. */
  finished(summary: RequestSummary): void;
  /** An attempt failed and the request goes to another endpoint. */
  retried(fault: Fault): void;
  /** The configured tokenizer did not answer for this model and the estimate stood in. */
  tokenizerFellBack(model: string): void;
  /** Something went wrong on the way of a request, for the log. */
  fault?(event: FaultEvent): void;
  /** A defect of the gateway met a request, which got an error; everything else goes on. */
  bug?(error: unknown): void;
}

/** What all requests share. */
export interface GatewayParts {
  readonly router: RequestRouter;
  readonly directory: EndpointDirectory;
  readonly pools: UpstreamPools;
  readonly openFiles: OpenFiles;
  readonly connections: ClientConnections;
  readonly tokenizer: (model: string) => Tokenizer;
  /** Those in force; a request keeps the ones that it came under. */
  limits: GatewayLimits;
  readonly counters: GatewayCounters;
  readonly observe: RequestObserver;
  readonly identifier: Identifier;
  readonly slo: SloRules;
  /** Profile for a model, where the request asked for `asked`; "" is the router's default. */
  readonly profileOf: (model: string, asked: string) => string | Refusal;
  /** Models that requests get in place of those that they name. */
  readonly rewrites: () => ModelRewrites;
  /** The same of the limits in force. */
  waits: WaitLimits;
  readonly hangs: AttemptWatch;
  /** Beginnings of chats that were read before. */
  readonly knownBodies: KnownBodies;
  readonly answersIndexed: AnswersIndexed;
  readonly answers: AnswerQueue;
  /** Where answers of /v1/responses are stored. */
  readonly responses: StoredResponses;
  /** Asks engines whether they still serve. */
  readonly serving: ServingChecks;
  /** Undefined where there is none. */
  readonly cascades: Cascades | undefined;
  /** Asks engines for usage where the client did not, and keeps the added chunk from it. */
  readonly requestUsage: boolean;
  /** Keeps the tokens of streams, so that one that breaks can go on at another endpoint. */
  readonly continuesStreams: boolean;
  /** Where an engine sends no ids of them, one goes on behind its text. */
  readonly continuesByText: boolean;
  /** Gives a seed to streams that could go on no other way. */
  readonly seedsStreams: boolean;
  /** What these take. */
  continuationBytes: number;
  /** Questions under way that free blocks which nobody fetched. */
  releasesUnderWay: number;
  /** Spans of requests; undefined where there are none. */
  readonly spans: RequestSpans | undefined;
  /** Headers that state how long a client waits, in lower case; the first that it sent counts. */
  readonly timeoutHeaders: readonly string[];
  /** What of clients' requests is for engines alone. */
  readonly engineFields: EngineFields;
  /** Clients authenticate to the gateway, so that their keys are not the engines'. */
  readonly keepsAuthorization: boolean;
  /** Answers carry x-gnomon-* headers. */
  readonly sendsOwnHeaders: boolean;
  /** What pages in browsers may do; undefined leaves that to the engines. */
  readonly cors: Cors | undefined;
  /** Requests between their head and their last byte. */
  readonly inFlight: InFlight;
  readonly bodies: BodyRoom;
  /** What clients have yet to read. */
  readonly unread: UnreadAnswers;
  /** Counts the requests that brought an id, which alone need not be unique. */
  sequence: number;
  /** leaving: it will end soon, so every answer ends its connection. draining: also no requests of new connections. */
  phase: "serving" | "leaving" | "draining";
}
