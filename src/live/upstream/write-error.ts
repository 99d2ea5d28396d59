import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { KeptAnswer } from "../answer/answer.ts";
import { cutRefusal, errorEvent, giveUpRefusal } from "../answer/fault-words.ts";
import type { Exchange } from "../inference/exchange.ts";
import type { ErrorEffect } from "#core/path/path-effect.ts";
import { writeKept } from "./write-kept.ts";

/** What endpoints themselves reported of a failure. */
export interface EngineErrors {
  /** In place of an answer. */
  readonly kept: KeptAnswer | undefined;
  /** In a stream that had begun: the whole event. */
  readonly event: Buffer | undefined;
}

/** Writes how a request failed: the endpoint's own error, where one was kept, or one of the gateway's. */
export function writeError(
  exchange: Exchange,
  endpoint: EndpointId,
  { kind, fault }: ErrorEffect,
  { kept, event }: EngineErrors,
): void {
  if (kind === "write-error-event") {
    exchange.writer.write(event ?? errorEvent(exchange.route.dialect, cutRefusal(fault)));
  } else if (kind === "write-error") exchange.answerRefusal(giveUpRefusal(fault), endpoint);
  else if (kept !== undefined) writeKept(exchange, endpoint, fault, kept);
}
