import type { GiveUpReason } from "#core/path/path-router.ts";
import { newStageCounts, type StageCounts } from "#core/stages.ts";

/** What the request path counts; each only grows. Read by the metrics, written nowhere else. */
export interface GatewayCounters extends StageCounts {
  /** Requests answered by the gateway itself, by reason. */
  readonly refused: Record<string, number>;
  /** Requests that could not be read and went on to another router as they came, by reason. */
  readonly passedUnread: Record<string, number>;
  /** Engines' own fields and headers that clients sent and that were taken out, by name. */
  readonly stripped: Record<string, number>;
  /** Requests that limits refused, by the limit's name. */
  readonly limited: Record<string, number>;
  /** Requests that had to wait for their turn, by what for. */
  readonly queued: Record<string, number>;
  /** Attempts that failed before the client got a byte, by fault. */
  readonly faults: Record<string, number>;
  retries: number;
  /** Failed attempts that no other followed, by reason. */
  readonly retriesDenied: Record<GiveUpReason, number>;
  /** Requests sent again to the same endpoint since a kept connection had just closed. */
  reconnects: number;
  /** Requests without a byte that left an endpoint, by what it was: lost or hung. */
  readonly moved: Record<string, number>;
  /** Answers that broke after the client got bytes, and did not go on. */
  cuts: number;
  /** Blocks that waited for an endpoint which never fetched them: freed, and left to their engine's timeout. */
  transfersReleased: number;
  transfersStranded: number;
  clientAborts: number;
  /** Clients cut off since they did not read. */
  clientStalls: number;
  /** Requests whose client's own deadline passed, by the state that they were in. */
  readonly deadlines: Record<string, number>;
  /** Requests whose limit ran out. */
  timeouts: number;
  /** Calls of engines' administration that were sent to the engines. */
  administrationCalls: number;
  /** Requests that follow a stored response, by where that is: noted, found, gone, unknown. */
  readonly responsesFollowed: Record<string, number>;
  /** Engines asked whether an answer is whole that ended, by what they do: they serve, or end. */
  readonly servingChecks: Record<string, number>;
  /** Places of stored responses beyond those that are remembered. */
  responsePlacesForgotten: number;
  /** Connections refused above the limit. */
  connectionsDropped: number;
  /** Connections that were refused or not made since no file was left for them, by whom they were of: client or engine. */
  readonly outOfFiles: Record<string, number>;
  /** Requests ended since their bodies came slowly, by reason: slow or gave-way. */
  readonly bodiesCut: Record<string, number>;
  /** Connections cut since their clients did not read, and all clients together had too much to read. */
  unreadCut: number;
  /** Connections cut since too many requests waited on them. */
  pipelinesCut: number;
  /** Connections of clients on which TLS came to nothing. */
  handshakesFailed: number;
  /** Requests that were not HTTP. */
  malformedHttp: number;
  /** Long bodies of chats whose beginning was known or not, and beginnings that were kept and dropped. */
  readonly knownBodies: Record<string, number>;
  /** Events or answers that passed unread above the limit. */
  uninspected: number;
  /** Ids of answers' tokens beyond those kept of one answer. */
  answerTokensDropped: number;
  /** Answers whose blocks went into the prefix index, by where their tokens are from: ids or text. */
  readonly answersKnown: Record<string, number>;
  /** Answers whose tokens were to be found out and were not, by reason. */
  readonly answersUnknown: Record<string, number>;
  /** Inputs about progress that reached the router. */
  progressInputs: number;
  /** Streams of external processing that a proxy opened, one an HTTP request. */
  pickerStreams: number;
  /** Requests that a proxy took to another endpoint than the chosen one. */
  pickerMoved: number;
  /** Bodies, or pieces of them, that came again after the last one; some versions of Envoy send it twice. */
  pickerRepeated: number;
  /** Connections of proxies that came of age. */
  pickerRenewed: number;
  /** Calls of a proxy that ended with an error, and connections that brought none, by reason. */
  readonly pickerFailures: Record<string, number>;
  /** Bugs caught at the edge of a request; each is a defect. */
  internalErrors: number;
}

/** Counters before the first request. */
export function newCounters(): GatewayCounters {
  return {
    refused: {},
    passedUnread: {},
    stripped: {},
    limited: {},
    queued: {},
    faults: {},
    retries: 0,
    retriesDenied: { budget: 0, attempts: 0, time: 0, "no-endpoint": 0 },
    reconnects: 0,
    moved: {},
    ...newStageCounts(),
    cuts: 0,
    transfersReleased: 0,
    transfersStranded: 0,
    clientAborts: 0,
    clientStalls: 0,
    deadlines: {},
    timeouts: 0,
    administrationCalls: 0,
    responsesFollowed: {},
    servingChecks: {},
    responsePlacesForgotten: 0,
    connectionsDropped: 0,
    // Both from the start: an alert on their growth would miss the first of a series that begins with it.
    outOfFiles: { client: 0, engine: 0 },
    bodiesCut: {},
    unreadCut: 0,
    pipelinesCut: 0,
    handshakesFailed: 0,
    malformedHttp: 0,
    knownBodies: {},
    uninspected: 0,
    answerTokensDropped: 0,
    answersKnown: {},
    answersUnknown: {},
    progressInputs: 0,
    pickerStreams: 0,
    pickerMoved: 0,
    pickerRepeated: 0,
    pickerRenewed: 0,
    pickerFailures: {},
    internalErrors: 0,
  };
}

/** One more under a name of a closed set. */
export function countUp(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}
