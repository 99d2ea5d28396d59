import { REFUSAL_REASONS } from "#core/admission/held.ts";
import type { Decision, Placed } from "#core/input/decision.ts";
import type { AskingInput, RequestAgain } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";
import type { Flight } from "./path/flight.ts";
import type { FlightPaths } from "./path/flight-paths.ts";
import type { RouterGroup } from "./routers/router-group.ts";
import type { SimulationEvent } from "./path/simulation-event.ts";
import type { SimulationOptions } from "./setting/simulation-options.ts";

/** The simulation as decisions see it. */
export interface RoutingHost {
  readonly router: RouterGroup;
  readonly clock: Micros;
  readonly signals: { beforeDecision(at: Micros): void };
  later(at: Micros, event: SimulationEvent): void;
  readonly paths: Pick<FlightPaths, "routed" | "refused" | "left">;
}

/**
 * Has requests decided on, and asks the router whose turn it is among those that wait, as the gateway does: after every
 * input, and when a time has come.
 */
export class RequestDispatcher {
  /** Requests that admission refused, by its reason, and times that a request had to wait. */
  readonly refusals: Map<string, number> = new Map();
  waits = 0;
  readonly #host: RoutingHost;
  readonly #options: Pick<SimulationOptions, "forced" | "observe">;
  readonly #waiting = new Map<string, Flight>();
  /** When the soonest turn is that stands on the agenda. */
  #turnAt: Micros = Infinity;

  constructor(host: RoutingHost, options: Pick<SimulationOptions, "forced" | "observe">) {
    this.#host = host;
    this.#options = options;
  }

  route(flight: Flight): void {
    this.#decided(flight, this.decide({ kind: "request-arrived", at: this.#host.clock, request: flight.route }));
  }

  /** Whoever counterfactually forces decisions may force each of a request's. */
  decide(input: RequestAgain): Placed;
  decide(input: AskingInput): Decision;
  decide(input: AskingInput): Decision {
    const { signals, clock, router } = this.#host;
    signals.beforeDecision(clock);
    const decision = router.accept(
      input,
      this.#options.forced?.get("request" in input ? input.request.id : input.requestId),
    );
    this.#options.observe?.(input, decision);
    this.accepted();
    return decision;
  }

  /** The router took something in. */
  accepted(): void {
    if (this.#waiting.size > 0) this.#turnBy(this.#host.clock);
  }

  /** Whoever's turn it is. */
  turn(): void {
    const { router, clock: at } = this.#host;
    this.#turnAt = Infinity;
    for (;;) {
      const requestId = router.due(at);
      const flight = requestId === undefined ? undefined : this.#waiting.get(requestId);
      if (flight === undefined) break;
      const decision = this.decide({ kind: "request-released", at, requestId: flight.id });
      // It was to go on and cannot: nor can what is behind it, before something happens.
      if (decision.kind === "queued") break;
      this.#waiting.delete(flight.id);
      this.#decided(flight, decision);
    }
    if (this.#waiting.size > 0) this.#turnBy(Math.max(at + 1, Math.ceil(router.dueAt)));
  }

  /** The client of a request gives up, if that still waits. */
  waitedOut(flight: Flight): void {
    if (!this.#waiting.delete(flight.id)) return;
    this.#host.paths.left(flight, "timed-out");
  }

  #decided(flight: Flight, decision: Decision): void {
    const host = this.#host;
    switch (decision.kind) {
      case "routed":
        return host.paths.routed(flight, decision);
      case "queued":
        return this.#entered(flight);
      case "rejected": {
        const isRefused = REFUSAL_REASONS.some((reason) => reason === decision.reason);
        if (isRefused) this.refusals.set(decision.reason, (this.refusals.get(decision.reason) ?? 0) + 1);
        return host.paths.refused(flight, isRefused ? "rejected" : "unplaced");
      }
    }
  }

  #entered(flight: Flight): void {
    this.waits++;
    this.#waiting.set(flight.id, flight);
    if (flight.deadlineAt === undefined) return;
    this.#host.later(Math.max(this.#host.clock, flight.deadlineAt), { kind: "waited-out", flight });
  }

  #turnBy(at: Micros): void {
    if (at >= this.#turnAt || at === Infinity) return;
    this.#turnAt = at;
    this.#host.later(at, { kind: "queue-turn" });
  }
}
