import { SessionInference } from "#core/session/session-inference.ts";
import type { TraceItem } from "../codec/record.ts";
import { derivedHeader } from "./derived-header.ts";
import { KeptRequests } from "./kept-requests.ts";
import type { Tally } from "./tally.ts";

/**
 * A recorded trace with the first `turnsMax` requests of each conversation. Turns are taken in the order in which the
 * router got them, which is their order of time. Requests of no conversation stay. Decisions stay as they were made, by
 * a router that had seen the others too: the result does not replay, and its header states so.
 */
export async function* capRecorded(
  items: AsyncIterable<TraceItem>,
  turnsMax: number,
  left: Tally,
): AsyncGenerator<TraceItem> {
  let kept = turnFilter(turnsMax);
  for await (const item of items) {
    if (item.kind === "run") {
      kept = turnFilter(turnsMax);
      yield { kind: "run", header: derivedHeader(item.header, `cap --max-turns ${turnsMax}`, false) };
    } else if (item.kind === "gap" || kept.stays(item.input)) yield item;
    else if (item.input.kind === "request-arrived") left.count(`turn after the first ${turnsMax} of its conversation`);
  }
}

function turnFilter(turnsMax: number): KeptRequests {
  const sessions = new SessionInference();
  const turns = new Map<string, number>();
  return new KeptRequests((request) => {
    const session = sessions.sessionOf(request);
    if (session === "") return true;
    const before = turns.get(session) ?? 0;
    if (before < turnsMax) turns.set(session, before + 1);
    return before < turnsMax;
  });
}
