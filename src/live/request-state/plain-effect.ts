import type { Fault } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";

import type { AskContinuation, AskRetry, ErrorEffect, FaultReport, RequestEffect } from "./request-effect.ts";

/** An effect without more than its name; those below are made once. */
export const plain = <K extends RequestEffect["kind"]>(kind: K): { readonly kind: K } => ({ kind });
export const SEND = plain("send");
export const RELEASE = plain("release-attempt");
export const REPORT_PREFILLED = plain("report-prefilled");
export const REPORT_FIRST_TOKEN = plain("report-first-token");
export const WRITE_HELD = plain("write-held");
export const END_CLIENT = plain("end-client");
export const DESTROY_CLIENT = plain("destroy-client");
export const WRITE_REFUSAL = plain("write-refusal");
export const REPORT_CLIENT_LEFT = plain("report-client-left");
export const FORGET = plain("forget");
export const REPORT_TIMEOUT = plain("report-timeout");

export const faulty = (
  kind: (ErrorEffect | FaultReport | AskRetry | AskContinuation)["kind"],
  fault: Fault,
): RequestEffect => ({ kind, fault });
export const outcomeOf = (fault: Fault): Outcome => (fault === "timeout" ? "timeout" : "failed");
