import type { RequestFinished } from "#core/input/input.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { ObservedPlace } from "#core/request/observed-place.ts";
import { mix32 } from "#core/base/random.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Micros } from "#core/base/units.ts";
import { DueQueue } from "../due-queue.ts";
import {
  NO_POLICY_VERSION,
  breakdownDigest,
  type RecordedDecision,
  type TraceHeader,
  type TraceItem,
  type TraceRecord,
} from "../codec/record.ts";
import type { WorkloadRequest } from "../workload-request.ts";
import type { Tally } from "./tally.ts";
import type { Observation, TrafficRequest } from "./traffic.ts";

/**
 * A trace of what another system recorded of its traffic: arrivals, first tokens and ends in order of time. Where a
 * request went is given as a decision without candidates, if it was recorded or there was one endpoint alone. Requests
 * must come in order of arrival; those of which nothing was observed are counted in `left`. Only what is in flight is in
 * memory.
 */
export async function* trafficToTrace(
  traffic: AsyncIterable<TrafficRequest>,
  header: TraceHeader,
  left: Tally,
): AsyncGenerator<TraceItem> {
  yield { kind: "run", header };
  const pending = new DueQueue<TraceRecord>();
  const only = header.endpoints.length === 1 ? header.endpoints[0]?.id : undefined;
  let sequence = 0;
  for await (const { id, request, observed } of traffic) {
    if (observed === undefined) {
      left.count("nothing was observed of it");
      continue;
    }
    const at = request.arrivalMicros;
    yield* dueUntil(pending, at);
    const route = routeRequest(id === "" ? `request_${request.index}` : id, request);
    const endpoint = observed.endpoint === "" ? only : observed.endpoint;
    const went = endpoint === undefined ? undefined : wentTo(endpoint, route.id, at, header, sequence++);
    const place: ObservedPlace | undefined =
      header.observed === undefined || endpoint === undefined ? undefined : { endpoint, by: "log", sure: 1 };
    const arrived = { kind: "request-arrived", at, request: route, ...(place && { observed: place }) } as const;
    yield { kind: "record", input: arrived, decision: went };
    if (observed.ttftMicros >= 0) {
      const firstAt = at + observed.ttftMicros;
      pending.push(firstAt, recordOf({ kind: "first-token", at: firstAt, requestId: route.id }));
    }
    if (Number.isNaN(observed.e2eMicros)) continue;
    const end = finished(route.id, request, observed);
    pending.push(end.at, recordOf(end));
  }
  yield* dueUntil(pending, Infinity);
}

function* dueUntil(pending: DueQueue<TraceRecord>, at: Micros): Generator<TraceItem> {
  while ((pending.nextDue ?? Infinity) <= at) {
    const record = pending.pop();
    if (record === undefined) return;
    yield record;
  }
}

function recordOf(input: TraceRecord["input"]): TraceRecord {
  return { kind: "record", input, decision: undefined };
}

const NO_CANDIDATES = { candidates: [], scorers: [], totals: new Float64Array(0), values: new Float64Array(0) };

/** Where another system sent a request, whatever it considered. */
function wentTo(
  endpoint: string,
  requestId: string,
  at: Micros,
  header: TraceHeader,
  sequence: number,
): RecordedDecision {
  return {
    kind: "routed",
    at,
    requestId,
    sequence,
    attempt: 1,
    profile: header.router.defaultProfile,
    policyVersion: NO_POLICY_VERSION,
    endpoint,
    reason: "recorded",
    hitTokens: 0,
    prefixSource: "approximate",
    usedLedger: false,
    breakdown: {
      ...NO_CANDIDATES,
      endpointCount: header.endpoints.length,
      clamped: 0,
      digest: breakdownDigest(NO_CANDIDATES),
    },
  };
}

function finished(requestId: string, request: WorkloadRequest, observed: Observation): RequestFinished {
  return {
    kind: "request-finished",
    at: request.arrivalMicros + Math.max(observed.e2eMicros, observed.ttftMicros || 0),
    requestId,
    outcome: observed.outcome,
    promptTokens: request.promptTokens,
    cachedTokens: Number.isNaN(observed.cachedTokens) ? undefined : observed.cachedTokens,
    outputTokens: observed.isAnswerUnknown ? undefined : request.outputTokens,
  };
}

function routeRequest(id: string, request: WorkloadRequest): RouteRequest {
  return {
    id,
    model: request.model,
    tenant: request.tenant,
    session: request.session,
    sloClass: request.sloClass,
    priority: 0,
    promptTokens: request.promptTokens,
    promptTokensExact: request.tokensByPrompt === undefined,
    outputTokensMax: undefined,
    sequences: request.sequences ?? 1,
    ...(request.tokensByPrompt && { tokensByPrompt: request.tokensByPrompt }),
    blocks: chainOf(request),
    profile: "",
  };
}

/** Full blocks alone have a hash. Ids are spread over all bits, since hashes are looked up by their low ones. */
function chainOf({ blockIds, blockTokens, promptTokens }: WorkloadRequest): BlockChain {
  const length = Math.min(blockIds?.length ?? 0, Math.floor(promptTokens / blockTokens));
  const hashes = new Int32Array(2 * length);
  for (let i = 0; i < length; i++) {
    const id = blockIds?.[i] ?? 0;
    const high = Math.floor(id / 0x1_0000_0000);
    const low = mix32((id | 0) ^ mix32(high));
    hashes[2 * i] = low;
    hashes[2 * i + 1] = mix32(high ^ low);
  }
  return { hashes, length, blockTokens };
}
