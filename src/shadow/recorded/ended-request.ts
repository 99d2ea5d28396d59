import type { RequestFinished } from "#core/input/input.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { REQUEST_TOKENS_MAX, type Micros } from "#core/base/units.ts";
import { promptShares } from "#trace/prompt-shares.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

/** A request of a trace, before its end. */
export interface Open {
  readonly route: RouteRequest;
  readonly at: Micros;
  endpoint: string;
  /** When another endpoint had computed its prompt; NaN for none. */
  prefilledAt: Micros;
  firstTokenAt: Micros;
  attempts: number;
  /** When it was sent to its last endpoint. */
  sentAt: Micros;
  /** Until it was its turn in the gateway. */
  queuedMicros: Micros;
  readonly heldMicros: Micros;
  /** A second endpoint that was asked, and when. */
  standby?: { readonly at: Micros; readonly endpoint: string };
}

export interface RecordedEnd extends Open {
  readonly endAt: Micros;
  readonly end: RequestFinished;
  /** As at its end, or as became known after it. */
  answerHashes: Int32Array | undefined;
}

/** Why a request that ended so cannot be simulated; undefined if it can. */
export function leftOutReason({ route }: Open, { outcome, promptTokens, outputTokens }: RequestFinished) {
  if (outcome === "refused") return "refused";
  if (outputTokens === undefined || outputTokens < 1) return `${outcome} without a known answer length`;
  const tokens = Math.max(promptTokens ?? route.promptTokens, outputTokens);
  return tokens > REQUEST_TOKENS_MAX ? "more tokens than a request can have" : undefined;
}

/** What a simulation is to do again; `index` and times as of the whole workload. */
export function workloadRequest(
  { route, at, end, answerHashes }: RecordedEnd,
  turn: number,
  before: RecordedEnd | undefined,
  index: number,
  started: Micros,
): Omit<WorkloadRequest, "blockTokens"> {
  const promptTokens = Math.max(1, end.promptTokens ?? route.promptTokens);
  return {
    index,
    arrivalMicros: at - started,
    // A name of its own: a client's session may stand for several conversations here.
    session: `conversation_${index - turn}`,
    turn,
    parent: undefined,
    joins: [],
    thinkMicros: before === undefined ? undefined : at - before.endAt,
    promptTokens,
    outputTokens: end.outputTokens ?? 1,
    ...(route.sequences > 1 && { sequences: route.sequences }),
    ...(route.tokensByPrompt && { tokensByPrompt: promptShares(promptTokens, route.tokensByPrompt) }),
    blockIds: blockIds(route.blocks.hashes, route.blocks.length),
    ...(answerHashes !== undefined && { answerIds: blockIds(answerHashes, answerHashes.length / 2) }),
    ...(route.cacheRead === false && { cacheRead: false }),
    text: undefined,
    tokenIds: undefined,
    tenant: route.tenant,
    sloClass: route.sloClass,
    model: route.model,
    ...(route.timeoutMicros !== undefined && { timeoutMicros: route.timeoutMicros }),
    ...(route.slo !== undefined && { slo: route.slo }),
  };
}

/** 53 bits of each chained hash: equal ids are equal content, what came before included. */
function blockIds(hashes: Int32Array, length: number): Float64Array {
  const ids = new Float64Array(length);
  for (let i = 0; i < length; i++) ids[i] = (hashes[2 * i]! >>> 0) * 0x20_0000 + (hashes[2 * i + 1]! >>> 11);
  return ids;
}
