import type { Micros } from "#core/base/units.ts";
import { giveUpRefusal } from "../answer/fault-words.ts";
import { countUp } from "../base/gateway-counters.ts";
import type { Exchange } from "./exchange.ts";

/** Ends a request that was not sent to any endpoint yet, once its client's deadline or the limit of all requests passed. */
export function waitOut(exchange: Exchange, at: Micros): void {
  const { context, deadlineAt, openedAt, state, waits } = exchange;
  if (at <= Math.min(deadlineAt, openedAt + waits.totalMicrosMax)) return;
  if (at > deadlineAt) countUp(context.counters.deadlines, state.kind);
  exchange.refuse(giveUpRefusal("timeout"));
}
