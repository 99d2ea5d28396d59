import type { HedgeSettled, RequestHedged } from "#core/request/hedge-input.ts";
import type { Open } from "./ended-request.ts";

/** A second endpoint was asked for a request, or it is known which of both answers. */
export function followHedge(
  open: Open | undefined,
  input: RequestHedged | HedgeSettled,
  endpoint: string | undefined,
): void {
  if (open === undefined) return;
  if (input.kind === "request-hedged") {
    if (endpoint !== undefined) open.hedge = { at: input.at, endpoint };
  } else if (input.winner === "second" && open.hedge !== undefined) {
    open.endpoint = open.hedge.endpoint;
    open.sentAt = open.hedge.at;
    open.attempts++;
  }
}
