import { conversations } from "../conversations.ts";
import type { WorkloadRequest } from "../workload-request.ts";

/**
 * A workload in sending order, out of one in any order: a conversation's turns stand together, with those of the
 * conversations that they start or await, since a simulated turn may come earlier than the recorded one did. Holds the
 * whole workload.
 */
export async function* byConversation(requests: AsyncIterable<WorkloadRequest>): AsyncGenerator<WorkloadRequest> {
  const all: WorkloadRequest[] = [];
  for await (const request of requests) all.push(request);
  let index = 0;
  for (const group of conversations(all)) for (const request of group) yield { ...request, index: index++ };
}
