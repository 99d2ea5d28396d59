import type { Routed } from "#core/input/decision.ts";
import {
  type BrokenPart,
  CONTINUATION,
  Continuation,
  type ContinuationHost,
} from "#core/path/continuation/continuation.ts";
import { type PathEvent, REROUTED } from "#core/path/path-event.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import type { Flight } from "../path/flight.ts";
import type { FlightPaths } from "../path/flight-paths.ts";
import type { OnwardPerformer } from "../path/stage-performer.ts";

/** A simulated answer that goes on at another engine, whose prompt is all that the client has. */
class AnswerElsewhere implements ContinuationHost {
  readonly #flight: Flight;
  readonly #paths: FlightPaths;

  constructor(flight: Flight, paths: FlightPaths) {
    this.#flight = flight;
    this.#paths = paths;
  }

  get router(): PathRouter {
    return this.#paths.router;
  }
  get routeId(): string {
    return this.#flight.id;
  }

  broken(): BrokenPart | undefined {
    const flight = this.#flight;
    if (!this.#paths.continues(flight)) return undefined;
    const outputTokens = flight.tokensOfAll;
    return { outputTokens, ...flight.blocksOf(outputTokens) };
  }

  goOn(decision: Routed): PathEvent {
    const flight = this.#flight;
    this.#paths.leaves(flight, decision);
    flight.goOn();
    flight.next = decision;
    return REROUTED;
  }

  wentOn(): void {
    this.#paths.counts.continuations++;
  }

  denied(): void {}
}

export const ANSWERS_ELSEWHERE: OnwardPerformer = ({ router }) =>
  router.sharedOf(CONTINUATION).timesMax > 0
    ? (flight, paths) => new Continuation(new AnswerElsewhere(flight, paths))
    : undefined;
