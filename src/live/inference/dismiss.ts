import { refusal } from "../http/errors.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Ends a request that the gateway cannot wait for any more, so that its client learns of it: with 503 where it has no byte,
 * else with an error event, or a broken connection where the answer is none of events.
 */
export function dismiss(exchange: Exchange): void {
  if (exchange.over) return;
  if (exchange.state.kind === "passing")
    exchange.dispatch({ kind: "upstream-broke", fault: "draining", continues: false });
  else exchange.refuse(refusal("draining", "The gateway is shutting down; another one may serve this request."));
}
