import type { WorkloadRequest } from "../workload-request.ts";
import type { SliceRange } from "./slice-recorded.ts";
import type { Tally } from "./tally.ts";

/**
 * A part of a workload. By time it holds the conversations, and the requests of none, that begin in the range; by number
 * the requests themselves, in sending order, where the first kept turn of a conversation that had begun before starts it
 * at its own arrival. The range's beginning becomes the workload's.
 */
export async function* sliceWorkload(
  requests: AsyncIterable<WorkloadRequest>,
  range: SliceRange,
  left: Tally,
): AsyncGenerator<WorkloadRequest> {
  const begun = new Map<string, boolean>();
  const starts = new Map<string, number>();
  let ordinal = -1;
  let index = 0;
  for await (const request of requests) {
    ordinal++;
    if (ordinal >= range.toRequest) break;
    const { session, arrivalMicros } = request;
    if (session !== "" && !begun.has(session)) {
      const start =
        request.parent === undefined ? arrivalMicros : (starts.get(request.parent.session) ?? arrivalMicros);
      starts.set(session, start);
      begun.set(session, false);
    }
    const startMicros = session === "" ? arrivalMicros : (starts.get(session) ?? arrivalMicros);
    if (ordinal < range.fromRequest || startMicros < range.fromMicros || startMicros >= range.toMicros) {
      left.count("outside the range");
      continue;
    }
    const follows = session === "" || begun.get(session) === true || request.turn === 0;
    if (session !== "") begun.set(session, true);
    if (!follows) left.count("(kept) starts its conversation, whose first turns are outside the range");
    yield {
      ...request,
      index: index++,
      arrivalMicros: Math.max(0, Math.max(arrivalMicros, follows ? 0 : startMicros) - shift(range)),
      thinkMicros: follows ? request.thinkMicros : undefined,
      parent: follows ? request.parent : undefined,
    };
  }
}

function shift({ fromMicros }: SliceRange): number {
  return Number.isFinite(fromMicros) ? Math.max(0, fromMicros) : 0;
}
