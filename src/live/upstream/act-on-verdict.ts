import { type FoundAttempt, look } from "#core/path/look.ts";
import { CLIENT_STALLED, HOLD_OVER, TIMED_OUT } from "#core/path/path-event.ts";
import { faultOfLeaving } from "#core/path/wait-verdict.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { Delivery } from "../answer/answer.ts";
import { countUp } from "../base/gateway-counters.ts";
import type { ForwardedRequest } from "./forwarded-request.ts";

/** Does with an attempt what its limits of time, and what is known of its endpoint, ask for. */
export function actOnVerdict(exchange: ForwardedRequest, delivery: Delivery, found: FoundAttempt): void {
  const { at, trouble } = found;
  const verdict = look(exchange.life, found, exchange.waits);
  const fault = faultOfLeaving(verdict, trouble);
  switch (verdict) {
    case "time-out":
      return exchange.dispatch(TIMED_OUT);
    case "stalled":
      return exchange.dispatch(CLIENT_STALLED);
    case "cut":
      return delivery.broke(fault);
    case "move":
      countUp(exchange.shared.counters.moved, trouble?.kind ?? "late");
      return delivery.attemptFailed(fault);
    case "give-up":
      return delivery.attemptFailed(fault);
    case "help":
      return exchange.life.late();
    case "wait":
      if (hidesHeadTooLong(exchange, at - exchange.arrivedAt)) exchange.dispatch(HOLD_OVER);
  }
}

function hidesHeadTooLong({ limits, state }: ForwardedRequest, waited: Micros): boolean {
  const { holdMillis } = limits;
  if (holdMillis === undefined || waited < holdMillis * MICROS_PER_MILLI) return false;
  return state.kind === "holding" && state.carriage === "stream" && !state.shown;
}
