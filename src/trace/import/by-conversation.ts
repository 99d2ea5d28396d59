import type { WorkloadRequest } from "../workload-request.ts";

/**
 * A workload in sending order, out of one in order of recorded time: a conversation's turns stand together behind its
 * first one, since a simulated turn may come earlier than the recorded one did. Conversations that start or await others
 * keep their places. Holds the whole workload.
 */
export async function* byConversation(requests: AsyncIterable<WorkloadRequest>): AsyncGenerator<WorkloadRequest> {
  const all: WorkloadRequest[] = [];
  const linked = new Set<string>();
  for await (const request of requests) {
    all.push(request);
    if (request.parent === undefined && request.joins.length === 0) continue;
    linked.add(request.session);
    if (request.parent !== undefined) linked.add(request.parent.session);
    for (const name of request.joins) linked.add(name);
  }
  const turns = new Map<string, WorkloadRequest[]>();
  for (const request of all) {
    const { session } = request;
    if (session === "" || linked.has(session)) continue;
    const known = turns.get(session);
    if (known === undefined) turns.set(session, [request]);
    else known.push(request);
  }
  let index = 0;
  for (const request of all) {
    const together = turns.get(request.session);
    if (together === undefined) yield { ...request, index: index++ };
    else if (together[0] === request) for (const turn of together) yield { ...turn, index: index++ };
  }
}
