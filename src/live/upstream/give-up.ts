import type { Fault } from "#core/endpoint/fault.ts";
import type { KeptAnswer } from "../answer/answer.ts";
import { cutRefusal, errorEvent, giveUpRefusal, reasonOf } from "../answer/fault-words.ts";
import type { Exchange } from "../request/exchange.ts";
import { clientHeaders } from "../request/headers.ts";

/** Answers a request that no endpoint is left for: with the last one's own error as it was, or with ours. */
export function giveUp(exchange: Exchange, endpoint: string, fault: Fault, kept: KeptAnswer | undefined): void {
  const { writer, route } = exchange;
  if (writer.headSent) {
    writer.write(errorEvent(route.dialect, cutRefusal(fault)));
    writer.end();
  } else if (kept === undefined) {
    exchange.answerRefusal(giveUpRefusal(fault), endpoint);
  } else {
    const headers = clientHeaders(kept.headers, exchange.ownHeaders(endpoint, reasonOf(fault)), false);
    headers.push("content-length", String(kept.body.length));
    if (fault === "saturated" && kept.headers["retry-after"] === undefined) headers.push("retry-after", "1");
    writer.whole(kept.status, headers, kept.body);
  }
}
