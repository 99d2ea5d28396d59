import type { Fault } from "#core/endpoint/fault.ts";

import { END_CLIENT, RELEASE, faulty, outcomeOf } from "./plain-effect.ts";
import type { RequestEffect } from "./request-effect.ts";
import type { Passing, Resuming, Severed } from "./request-state.ts";
import type { Step } from "./step.ts";

/** The client has a part of a stream, and policy and router are asked where it goes on. */
export function severed({ attempts }: Passing | Resuming, fault: Fault): Step {
  return { state: { kind: "severed", attempts, fault }, effects: [RELEASE, faulty("ask-continuation", fault)] };
}

/** It did not go on: the client gets an error event behind what it has. */
export function cutShort({ attempts, kind }: Severed | Resuming, fault: Fault): Step {
  const outcome = outcomeOf(fault);
  const finish: RequestEffect = { kind: "finish", outcome, known: true, counts: "answer" };
  const live = kind === "resuming" ? [RELEASE] : [];
  const written = [faulty("write-error-event", fault), END_CLIENT];
  return {
    state: { kind: "ended", attempts, outcome },
    effects: [...written, ...live, faulty("report-cut", fault), finish],
  };
}
