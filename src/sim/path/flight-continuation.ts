import type { Routed } from "#core/input/decision.ts";
import { type BrokenPart, Continuation, type ContinuationHost } from "#core/path/continuation/continuation.ts";
import { type PathEvent, REROUTED } from "#core/path/path-event.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import type { Flight } from "./flight.ts";
import type { FlightPaths } from "./flight-paths.ts";

/** A simulated answer that goes on at another engine, whose prompt is all that the client has. */
export class FlightContinuation implements ContinuationHost {
  readonly stage = new Continuation(this);
  readonly router: PathRouter;
  readonly #flight: Flight;
  readonly #paths: Pick<FlightPaths, "continues" | "leaves">;

  constructor(flight: Flight, paths: FlightPaths) {
    this.#flight = flight;
    this.#paths = paths;
    this.router = paths.router;
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

  denied(): void {}
}
