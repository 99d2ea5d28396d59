import { FORGET, RELEASE, REPORT_CLIENT_LEFT } from "./plain-effect.ts";
import type { RequestEffect } from "./request-effect.ts";
import type { Holding, Passing, Prefilling, RequestState, Resuming, Severed, Waiting } from "./request-state.ts";
import type { Step } from "./step.ts";

/** The client left: before anything was sent, or between two attempts of which it has no byte. */
export function leftBefore(state: RequestState): Step {
  return closed(state, [
    FORGET,
    REPORT_CLIENT_LEFT,
    abortion(state.kind !== "reading" && state.kind !== "preparing", "none"),
  ]);
}

/** No attempt is under way, and the client has a part of the answer. */
export function leftBetween(state: Severed): Step {
  return closed(state, [FORGET, REPORT_CLIENT_LEFT, abortion(true, "seen")]);
}

export function left(state: Prefilling | Waiting | Holding | Passing | Resuming): Step {
  return closed(state, [FORGET, RELEASE, REPORT_CLIENT_LEFT, abortion(true, "seen")]);
}

function abortion(known: boolean, counts: "seen" | "none"): RequestEffect {
  return { kind: "finish", outcome: "aborted", known, counts };
}

function closed({ attempts }: RequestState, effects: readonly RequestEffect[]): Step {
  return { state: { kind: "closed", attempts, outcome: "aborted" }, effects };
}
