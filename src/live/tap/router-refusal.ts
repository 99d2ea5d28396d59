import type { Fault } from "#core/endpoint/fault.ts";
import { type Refusal, refusal } from "../http/errors.ts";

/** The other router is gone. */
export const UNREACHABLE = refusal("upstream-broke", "The router behind this port could not be reached, or broke off.");

/** What a client gets where the other router did not answer. */
export function routerRefusal(fault: Fault): Refusal {
  switch (fault) {
    case "timeout":
      return refusal("deadline", "The router behind this port did not answer within the time that the request has.");
    case "saturated":
      return refusal(
        "saturated",
        "This gateway can open no more connections to the router behind it; try again later.",
      );
    default:
      return UNREACHABLE;
  }
}
