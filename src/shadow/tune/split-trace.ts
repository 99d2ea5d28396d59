import type { WorkloadRequest } from "#trace/workload-request.ts";
import { PackedWorkload, type WorkloadRequests, WorkloadPacker } from "../recorded/packed-workload.ts";
import { type Clusters, waits } from "../job/clusters.ts";

/** A trace in two: what a search may look at, and what it is judged by. */
export interface SplitTrace {
  /** Requests of conversations that began first, numbered anew. */
  readonly search: WorkloadRequests;
  /** 1 for the requests of the others, in the whole workload's order. */
  readonly heldOut: Uint8Array;
  readonly searchSessions: number;
  readonly heldOutSessions: number;
  readonly heldOutRequests: number;
  /**
   * The conversations that began first come twice in the search, the second time with text of their own: where turns wait
   * for one another most conversations are under way at once, and half of them would be half the load.
   */
  readonly isRepeated: boolean;
}

/** Where so many requests wait for others, conversations overlap. */
const WAITING_SHARE = 0.5;
/** Block ids of the second time are so much higher; ids stay below ID_END. */
const REPEATED_ID_STRIDE = 2 ** 40;
const ID_END = 2 ** 53;
const REPEATED_TOKEN_STRIDE = 2 ** 24;

/**
 * Splits by conversation, those that began first against the others, so that no conversation is on both sides. The search
 * ends where the others begin; turns after that are left out of it where their time is known.
 */
export function splitTrace(workload: WorkloadRequests, clusters: Clusters, share: number): SplitTrace {
  const { ofRow, startMicros } = clusters;
  const sessions = startMicros.length;
  const searchSessions = Math.min(sessions, Math.max(1, Math.round(share * sessions)));
  const endMicros = startMicros[searchSessions] ?? Infinity;
  const heldOut = Uint8Array.from(ofRow, (cluster) => (cluster >= searchSessions ? 1 : 0));
  const kept: WorkloadRequest[] = [];
  let waiting = 0;
  for (const request of workload) {
    if (waits(request)) waiting++;
    if (heldOut[request.index] === 0 && (waits(request) || request.arrivalMicros < endMicros)) kept.push(request);
  }
  const isRepeated = searchSessions < sessions && waiting > WAITING_SHARE * workload.length;
  const packer = new WorkloadPacker();
  for (const request of kept) packer.push(request);
  if (isRepeated) {
    const common = sharedBlocks(kept, ofRow);
    const laterMicros = endMicros - startMicros[0]!;
    for (const request of kept) packer.push(again(request, laterMicros, common));
  }
  return {
    search: new PackedWorkload(packer.columns()),
    heldOut,
    searchSessions,
    heldOutSessions: sessions - searchSessions,
    heldOutRequests: heldOut.reduce((sum, one) => sum + one, 0),
    isRepeated,
  };
}

function again(request: WorkloadRequest, laterMicros: number, common: ReadonlySet<number>): WorkloadRequest {
  const named = (session: string) => `${session}~again`;
  const own = (id: number) => (common.has(id) ? id : (id + REPEATED_ID_STRIDE) % ID_END);
  const { session, parent, joins, blockIds, answerIds, tokenIds } = request;
  return {
    ...request,
    arrivalMicros: request.arrivalMicros + laterMicros,
    session: session === "" ? "" : named(session),
    parent: parent === undefined ? undefined : { ...parent, session: named(parent.session) },
    joins: joins.map(named),
    blockIds: blockIds === undefined ? undefined : Float64Array.from(blockIds, own),
    tokenIds: tokenIds?.map((id) => id + REPEATED_TOKEN_STRIDE),
    ...(answerIds !== undefined && { answerIds: Float64Array.from(answerIds, own) }),
  };
}

/** Blocks of several conversations, as a system prompt's. */
function sharedBlocks(requests: readonly WorkloadRequest[], ofRow: Int32Array): ReadonlySet<number> {
  const owner = new Map<number, number>();
  const common = new Set<number>();
  for (const { index, blockIds } of requests) {
    const cluster = ofRow[index]!;
    for (const id of Array.from(blockIds ?? [])) {
      const first = owner.get(id);
      if (first === undefined) owner.set(id, cluster);
      else if (first !== cluster) common.add(id);
    }
  }
  return common;
}
