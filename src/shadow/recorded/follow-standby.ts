import type { Micros } from "#core/base/units.ts";
import type { Settled, StoodBy, Unmoved } from "#core/request/stage-step.ts";
import type { Open } from "./ended-request.ts";

/** A second endpoint has a request too, or it is known which of both answers. */
export function followStandby(
  open: Open | undefined,
  step: StoodBy | Settled | Unmoved,
  at: Micros,
  endpoint: string | undefined,
): void {
  if (open === undefined) return;
  if (step.kind === "stood-by") {
    if (endpoint !== undefined) open.standby = { at, endpoint };
  } else if (step.kind === "settled" && step.winner === "second" && open.standby !== undefined) {
    open.endpoint = open.standby.endpoint;
    open.sentAt = open.standby.at;
    open.attempts++;
  }
}
