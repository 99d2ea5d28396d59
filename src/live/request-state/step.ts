import type { RequestEffect } from "./request-effect.ts";
import type { RequestState } from "./request-state.ts";

/** What an event does to a request: its next state, and what is to be done, in order. */
export interface Step {
  readonly state: RequestState;
  readonly effects: readonly RequestEffect[];
}
