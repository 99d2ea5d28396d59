import type { Routed } from "#core/input/decision.ts";
import { type HedgeEnd, type HedgeHost, Hedging } from "#core/path/hedging/hedging.ts";
import { STANDBY_ANSWERS } from "#core/path/path-event.ts";
import type { GiveUpReason, PathRouter } from "#core/path/path-router.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { EngineObserver } from "./engine-observer.ts";
import type { Outcomes } from "../result/outcomes.ts";
import { Flight } from "./flight.ts";
import type { FlightPaths } from "./flight-paths.ts";

/** The simulation as second attempts see it. */
export interface SecondFlightHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  readonly outcomes: Outcomes;
  readonly observer: EngineObserver;
  readonly paths: FlightPaths;
  /** It is on its way to its engine. */
  carry(flight: Flight): void;
  /** Those in flight are looked at now and then, second ones among them. */
  readonly desk: { arrived(flight: Flight): void; departed(flight: Flight): void } | undefined;
}

/** A request's second engine: a flight of its own under the same id, which may take the first one's place. */
export class SecondFlight implements HedgeHost {
  readonly hedging: Hedging = new Hedging(this);
  readonly #host: SecondFlightHost;
  #first: Flight;
  #second: Flight | undefined;

  constructor(first: Flight, host: SecondFlightHost) {
    this.#first = first;
    this.#host = host;
  }

  get router(): PathRouter {
    return this.#host.paths.router;
  }
  get routeId(): string {
    return this.#first.id;
  }
  now(): Micros {
    return this.#host.clock;
  }
  /** While two engines have it. */
  get flight(): Flight | undefined {
    return this.#second;
  }

  sendSecond({ endpoint, priority, heldTokens, hitTokens }: Routed): void {
    const { observer, fleet, desk } = this.#host;
    const first = this.#first;
    const second = new Flight(first.row, first.source, this.#host.paths);
    second.hedgeRow = observer.hedges.open(first.source);
    observer.hedges.expectedTokens[second.hedgeRow] = heldTokens ?? hitTokens;
    second.hedgeOf = first;
    second.route = first.route;
    second.priority = priority ?? first.priority;
    second.engine = fleet.numberOf(endpoint);
    this.#second = second;
    desk?.arrived(second);
    this.#host.carry(second);
  }

  abortSecond(): void {
    if (this.#second !== undefined) this.#abandon(this.#second);
    this.#second = undefined;
  }

  takeSecond(): void {
    const { outcomes, observer } = this.#host;
    const [first, second] = [this.#first, this.#second!];
    const { row, hedgeRow } = second;
    this.#abandon(first);
    outcomes.copy(row, observer.hedges, hedgeRow);
    outcomes.expectedTokens[row] = observer.hedges.expectedTokens[hedgeRow]!;
    outcomes.endpoint[row] = second.engine;
    outcomes.attempts[row]! += 1;
    second.takes(first);
    this.#first = second;
    this.#second = undefined;
  }

  overtaken(): void {
    this.#first.path.dispatch(STANDBY_ANSWERS);
  }

  denied(why: GiveUpReason): void {
    const { hedgesDenied } = this.#host.paths.counts;
    hedgesDenied[why] = (hedgesDenied[why] ?? 0) + 1;
  }

  settled(end: HedgeEnd): void {
    const { hedges } = this.#host.paths.counts;
    hedges[end] = (hedges[end] ?? 0) + 1;
  }

  /** Nothing that its engine still sends counts. */
  #abandon(flight: Flight): void {
    const { fleet, clock, desk } = this.#host;
    const { engine, id } = flight;
    flight.closed = true;
    flight.engine = -1;
    desk?.departed(flight);
    if (engine >= 0) fleet.abort(clock, { engine, id });
  }
}
