import type { Routed } from "#core/input/decision.ts";
import { type HedgeEnd, type HedgeHost, Hedging } from "#core/path/hedging/hedging.ts";
import { hedgeAfter } from "#core/path/hedging/hedging-kind.ts";
import { STANDBY_ANSWERS } from "#core/path/path-event.ts";
import type { GiveUpReason, PathRouter } from "#core/path/path-router.ts";
import type { Micros } from "#core/base/units.ts";
import { Flight } from "../path/flight.ts";
import type { SecondOf, StagePerformer, Standby, StageHost } from "../path/stage-performer.ts";

/** A request's second engine: a flight of its own under the same id, which may take the first one's place. */
class SecondFlight implements HedgeHost, SecondOf {
  readonly hedging: Hedging = new Hedging(this);
  readonly afterMicros: Micros;
  readonly #host: StageHost;
  #first: Flight;
  #second: Flight | undefined;

  constructor(first: Flight, afterMicros: Micros, host: StageHost) {
    this.afterMicros = afterMicros;
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
  get flight(): Flight | undefined {
    return this.#second;
  }

  sendSecond({ endpoint, priority, heldTokens, hitTokens }: Routed): void {
    const { observer, fleet, desk } = this.#host;
    const first = this.#first;
    const second = new Flight(first.row, first.source, this.#host.paths);
    const row = observer.standbys.open(first.source);
    observer.standbys.expectedTokens[row] = heldTokens ?? hitTokens;
    second.standby = this.#standby(row);
    second.route = first.route;
    second.priority = priority ?? first.priority;
    second.engine = fleet.numberOf(endpoint);
    this.#second = second;
    desk?.arrived(second);
    this.#host.carry(second);
  }

  #standby(row: number): Standby {
    const { hedging } = this;
    return { row, began: () => hedging.secondBegan(), failed: (fault) => hedging.secondFailed(fault) };
  }

  abortSecond(): void {
    if (this.#second !== undefined) this.#abandon(this.#second);
    this.#second = undefined;
  }

  takeSecond(): void {
    const { outcomes, observer } = this.#host;
    const [first, second] = [this.#first, this.#second!];
    const { row, standby } = second;
    this.#abandon(first);
    outcomes.copy(row, observer.standbys, standby!.row);
    outcomes.expectedTokens[row] = observer.standbys.expectedTokens[standby!.row]!;
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
    const { engine, id, further } = flight;
    flight.closed = true;
    flight.engine = -1;
    desk?.departed(flight);
    if (engine >= 0) fleet.abort(clock, { engine, id, further });
  }
}

export const SECOND_FLIGHTS: StagePerformer = {
  performs({ settings }) {
    const afterMicros = hedgeAfter(settings);
    if (afterMicros === Infinity) return undefined;
    return (flight, host) => {
      const second = new SecondFlight(flight, afterMicros, host);
      flight.second = second;
      flight.hasStage(second.hedging);
    };
  },
};
