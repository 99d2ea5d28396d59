import type { Routed } from "#core/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Input } from "#core/input.ts";
import { askHedge, type HedgeEnd, type HedgeHost } from "#core/retry/ask-hedge.ts";
import type { SlotList } from "#core/slot-list.ts";
import type { Micros } from "#core/units.ts";
import type { EngineFleet } from "../engine-fleet.ts";
import type { EngineObserver } from "../engine-observer.ts";
import { Flight } from "../flight.ts";
import type { Outcomes } from "../outcomes.ts";
import type { PathCounts } from "../result/path-counts.ts";

/** The simulation as hedges see it. */
export interface HedgeDeskHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  readonly outcomes: Outcomes;
  readonly observer: EngineObserver;
  accept(input: Input): unknown;
  /** It is on its way to its engine. */
  carry(flight: Flight): void;
}

/**
 * Requests whose first token is late, at a second engine too: a flight of its own under the same id, which takes the
 * first one's place where its first token is here before, or where the first one fails.
 */
export class HedgeDesk {
  readonly #host: HedgeDeskHost;
  readonly #flights: SlotList<Flight>;
  readonly #counts: PathCounts;

  /** `flights` are all in flight, hedges among them. */
  constructor(host: HedgeDeskHost, flights: SlotList<Flight>, counts: PathCounts) {
    this.#host = host;
    this.#flights = flights;
    this.#counts = counts;
  }

  begin(flight: Flight, asks: HedgeHost): void {
    flight.hedgeAsked = true;
    const after = askHedge(asks, flight.id);
    const { hedgesDenied } = this.#counts;
    if (after.kind === "give-up") hedgesDenied[after.why] = (hedgesDenied[after.why] ?? 0) + 1;
    else this.#send(flight, after.decision);
  }

  #send(flight: Flight, { endpoint, priority, heldTokens, hitTokens }: Routed): void {
    const { observer, fleet } = this.#host;
    const hedge = new Flight(flight.row, flight.source);
    hedge.hedgeRow = observer.hedges.open(flight.source);
    observer.hedges.expectedTokens[hedge.hedgeRow] = heldTokens ?? hitTokens;
    hedge.hedgeOf = flight;
    hedge.hedgeAsked = true;
    hedge.route = flight.route;
    hedge.priority = priority ?? flight.priority;
    hedge.engine = fleet.numberOf(endpoint);
    flight.hedge = hedge;
    this.#flights.add(hedge);
    this.#host.carry(hedge);
  }

  /** The first token of one of both is here. */
  first(flight: Flight): void {
    if (flight.hedge !== undefined) this.#end(flight, "lost");
    else if (flight.hedgeOf !== undefined) this.#overtake(flight.hedgeOf, "won");
  }

  /** The hedge came to nothing. */
  failed(hedge: Flight, fault?: Fault): void {
    if (hedge.hedgeOf !== undefined) this.#end(hedge.hedgeOf, "failed", fault);
  }

  /** The first engine failed, and the second one has the request. */
  takesOver(flight: Flight, fault: Fault): void {
    this.#overtake(flight, "took-over", fault);
  }

  /** The request is over, or its time is. */
  drop(flight: Flight): void {
    if (flight.hedge !== undefined) this.#end(flight, "dropped");
  }

  #end(flight: Flight, end: HedgeEnd, fault?: Fault): void {
    const hedge = flight.hedge!;
    flight.hedge = undefined;
    this.#settled(flight, end, fault);
    this.#abandon(hedge);
  }

  #overtake(flight: Flight, end: HedgeEnd, fault?: Fault): void {
    const { outcomes, observer } = this.#host;
    const hedge = flight.hedge!;
    const { row, hedgeRow } = hedge;
    this.#settled(flight, end, fault);
    this.#abandon(flight);
    outcomes.copy(row, observer.hedges, hedgeRow);
    outcomes.expectedTokens[row] = observer.hedges.expectedTokens[hedgeRow]!;
    outcomes.endpoint[row] = hedge.engine;
    outcomes.attempts[row]! += 1;
    hedge.hedgeRow = -1;
    hedge.hedgeOf = undefined;
    flight.hedge = undefined;
  }

  #settled({ id: requestId }: Flight, end: HedgeEnd, fault: Fault | undefined): void {
    const { hedges } = this.#counts;
    hedges[end] = (hedges[end] ?? 0) + 1;
    const winner = end === "won" || end === "took-over" ? "second" : "first";
    const failed = fault === undefined ? {} : { fault };
    this.#host.accept({ kind: "hedge-settled", at: this.#host.clock, requestId, winner, ...failed });
  }

  /** Nothing that its engine still sends counts. */
  #abandon(flight: Flight): void {
    const { fleet, clock } = this.#host;
    const { engine, id } = flight;
    flight.closed = true;
    flight.engine = -1;
    this.#flights.remove(flight);
    if (engine >= 0) fleet.abort(clock, { engine, id });
  }
}
