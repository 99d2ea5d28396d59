import type { Fault } from "#core/endpoint/fault.ts";
import type { KeptAnswer } from "../answer/answer.ts";
import { reasonOf } from "../answer/fault-words.ts";
import type { Exchange } from "../inference/exchange.ts";
import { clientHeaders } from "../http/headers.ts";

/** Answers a request that no endpoint is left for with the last one's own error as it was. */
export function writeKept(exchange: Exchange, endpoint: string, fault: Fault, kept: KeptAnswer): void {
  const headers = clientHeaders(kept.headers, exchange.ownHeaders(endpoint, reasonOf(fault)), false);
  headers.push("content-length", String(kept.body.length));
  if (fault === "saturated" && kept.headers["retry-after"] === undefined) headers.push("retry-after", "1");
  exchange.writer.whole(kept.status, headers, kept.body);
}
