import type { Queued } from "#core/decision.ts";

import { countUp } from "../metrics/gateway-counters.ts";
import type { AskingRequest } from "../request/ask.ts";
import type { TurnTaken } from "./queue-turns.ts";

/** The router let a request wait; `taken` is notified of what it decides then. */
export function awaitTurn(asking: AskingRequest, { at, reason }: Queued, taken: TurnTaken): void {
  const { turns, counters } = asking.context;
  countUp(counters.queued, reason);
  turns.wait(asking.routeId, (decision) => {
    asking.queuedMicros = decision.at - at;
    try {
      taken(decision);
    } catch (error) {
      asking.bug(error);
    }
  });
}
