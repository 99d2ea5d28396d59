import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { KeptAnswer } from "../answer/answer.ts";
import { cutRefusal, errorEvent, giveUpRefusal, reasonOf } from "../answer/fault-words.ts";
import type { ForwardedRequest } from "./forwarded-request.ts";
import type { ErrorEffect } from "#core/path/path-effect.ts";
import { clientHeaders } from "../http/headers.ts";
import type { Fault } from "#core/endpoint/fault.ts";

/** What endpoints themselves reported of a failure. */
export interface EngineErrors {
  /** In place of an answer. */
  readonly kept: KeptAnswer | undefined;
  /** In a stream that had begun: the whole event. */
  readonly event: Buffer | undefined;
}

/** Writes how a request failed: the endpoint's own error, where one was kept, or one of the gateway's. */
export function writeError(
  exchange: ForwardedRequest,
  endpoint: EndpointId,
  { kind, fault }: ErrorEffect,
  { kept, event }: EngineErrors,
): void {
  if (kind === "write-error-event") {
    exchange.writer.write(event ?? errorEvent(exchange.route.dialect, cutRefusal(fault)));
  } else if (kind === "write-error") exchange.answerRefusal(giveUpRefusal(fault), endpoint);
  else if (kept !== undefined) writeKept(exchange, endpoint, fault, kept);
}

/** Answers a request that no endpoint is left for with the last one's own error as it was. */
function writeKept(exchange: ForwardedRequest, endpoint: string, fault: Fault, kept: KeptAnswer): void {
  const headers = clientHeaders(kept.headers, exchange.ownHeaders(endpoint, reasonOf(fault)), false);
  headers.push("content-length", String(kept.body.length));
  if (fault === "saturated" && kept.headers["retry-after"] === undefined) headers.push("retry-after", "1");
  exchange.writer.whole(kept.status, headers, kept.body);
}
