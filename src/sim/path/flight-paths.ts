import type { Decision, Placed, Routed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Input, RequestAgain } from "#core/input/input.ts";
import type { Finish } from "#core/path/path-effect.ts";
import {
  type AnswerBegan,
  type AnswerEnded,
  ASKED_ANEW,
  attemptFailed,
  CLIENT_LEFT,
  FIRST_BYTES,
  FIRST_TOKEN,
  type PathEvent,
} from "#core/path/path-event.ts";
import { PathRouter } from "#core/path/path-router.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import type { PerformedEffect } from "#core/path/request-path.ts";
import { STAGES } from "#core/stages.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { Ending, Outcomes } from "../result/outcomes.ts";
import { newPathCounts, type PathCounts } from "../result/path-counts.ts";
import type { RouterGroup } from "../routers/router-group.ts";
import type { Flight } from "./flight.ts";
import type { AheadOfFlights, OnwardPerformer } from "./stage-performer.ts";

/** The simulation as requests on their way see it. */
export interface FlightHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  readonly router: RouterGroup;
  readonly outcomes: Outcomes;
  readonly ahead: Pick<AheadOfFlights, "leaves" | "sendOn">;
  accept(input: Input): Decision | undefined;
  /** A request is decided on again, which whoever counterfactually forces decisions may force as well. */
  decide(input: RequestAgain): Placed;
  send(flight: Flight, decision: Routed): void;
  close(flight: Flight, outcome: Outcome, outputTokens?: number): void;
  ended(flight: Flight, status: Ending | undefined): void;
}

const STREAM_BEGAN: AnswerBegan = { kind: "answer-began", carriage: "stream" };
const WHOLE_BEGAN: AnswerBegan = { kind: "answer-began", carriage: "whole" };
const SERVED: AnswerEnded = { kind: "answer-ended", outcome: "ok", promisesMark: false };
const TURNED_DOWN: AnswerEnded = { kind: "answer-ended", outcome: "refused", promisesMark: false };

/**
 * What the gateway does with sockets, in a simulation: turns what engines do with requests into events of their paths, and
 * carries out the effects that follow. What is decided on the way is the path's own, as in the gateway.
 */
export class FlightPaths {
  readonly counts: PathCounts = newPathCounts();
  readonly router: PathRouter;
  /** Where answers that break may go on. */
  readonly #onward: ReturnType<OnwardPerformer>;
  readonly #host: FlightHost;

  constructor(rules: PathRules, onward: OnwardPerformer, host: FlightHost) {
    this.#host = host;
    this.router = new PathRouter({
      stages: STAGES,
      settings: rules.settings,
      now: () => host.clock,
      accept: (input) => host.accept(input),
      decide: (input) => host.decide(input),
      routerOf: (requestId) => host.router.routerOf(requestId),
    });
    this.#onward = onward(this);
  }

  routed(flight: Flight, decision: Routed): void {
    this.router.sent();
    flight.next = decision;
    flight.path.routed(decision);
  }

  /** Turned away before it was sent. */
  refused(flight: Flight, status: Ending): void {
    flight.ending = status;
    flight.path.dispatch({ kind: "refused", outcome: "refused" });
  }

  /** Its client gives up; `outputTokens`: what it has, where that is known. */
  left(flight: Flight, status: Ending | undefined, outputTokens?: number): void {
    flight.ending = status;
    flight.tokensAtEnd = outputTokens;
    flight.path.dispatch(CLIENT_LEFT);
  }

  /** The first token is here; it goes to the client unless the answer is still to be judged. */
  firstToken(flight: Flight): void {
    flight.standby?.began();
    const { path } = flight;
    if (path.state.kind !== "resuming") path.dispatch(STREAM_BEGAN);
    path.dispatch(FIRST_TOKEN);
    flight.progressed = true;
    if (flight.judged === undefined) path.dispatch(FIRST_BYTES);
  }

  /** An answer that was held until it was judged is kept: its client gets it. */
  kept(flight: Flight): void {
    flight.path.dispatch(FIRST_BYTES);
  }

  /** An answer that was held is given up, and this endpoint makes another. */
  askedAnew(flight: Flight, decision: Routed): void {
    flight.next = decision;
    flight.path.dispatch(ASKED_ANEW);
  }

  /** Its engine is done with it; `status` is how, where that is not written down yet. */
  ended(flight: Flight, outcome: Outcome, status: Ending | undefined): void {
    const { path, standby } = flight;
    if (standby !== undefined) return standby.failed();
    if (outcome === "aborted") return this.left(flight, status);
    flight.ending = status;
    // No first token was reported of what is over before its answer is here.
    if (path.state.kind !== "passing") path.dispatch(outcome === "ok" ? STREAM_BEGAN : WHOLE_BEGAN);
    path.dispatch(outcome === "ok" ? SERVED : TURNED_DOWN);
  }

  /** The attempt under way fails. */
  broke(flight: Flight, fault: Fault): void {
    const { path, standby } = flight;
    if (standby !== undefined) return standby.failed(fault);
    if (path.state.kind !== "passing") return path.dispatch(attemptFailed(fault));
    const continues = this.continues(flight);
    if (continues && flight.onward === undefined) {
      flight.onward = this.#onward!(flight, this);
      flight.hasStage(flight.onward);
    }
    path.dispatch({ kind: "upstream-broke", fault, continues });
  }

  /** One answer that streams, as every simulated one does, could go on behind its tokens. */
  continues({ tokensOfAll, source, route }: Flight): boolean {
    const lacksSome = tokensOfAll < source.outputTokens;
    return this.#onward !== undefined && route.sequences === 1 && lacksSome;
  }

  perform(flight: Flight, effect: PerformedEffect): PathEvent | undefined {
    const { counts } = this;
    const { clock: at } = this.#host;
    switch (effect.kind) {
      case "send":
        this.#send(flight);
        break;
      case "release-attempt":
        this.#release(flight);
        break;
      case "report-first-token":
        this.router.accept({ kind: "first-token", at, requestId: flight.id });
        break;
      case "report-timeout":
        counts.timeouts++;
        break;
      case "report-retried":
        counts.retries++;
        break;
      case "report-given-up":
        if (effect.why === "budget") counts.retriesDenied++;
        break;
      case "report-cut":
        counts.cuts++;
        break;
      case "finish":
        this.#finish(flight, effect);
        break;
      case "report-illegal":
        throw new Error(`the event ${effect.event} has no meaning for a request that is ${effect.state}`);
      default:
      // Clients' bytes, which nobody simulates.
    }
    return undefined;
  }

  /** The attempt failed, and the request goes there next. */
  retried(flight: Flight, decision: Routed): void {
    this.leaves(flight, decision);
    flight.reset();
    this.#host.outcomes.again(flight.row);
    flight.next = decision;
  }

  /** It goes elsewhere: nothing is left of what another engine computed for it. */
  leaves(flight: Flight, decision: Routed): void {
    this.#host.ahead.leaves(flight, decision);
  }

  #send(flight: Flight): void {
    // A second engine has it already, or another one computed its prompt.
    if (flight.next !== undefined) this.#host.send(flight, flight.next);
    else if (flight.leg !== undefined) this.#host.ahead.sendOn(flight);
    flight.next = undefined;
    flight.isTaken = false;
  }

  #release(flight: Flight): void {
    const { state } = flight.path;
    const isOver = state.kind === "ended" && (state.outcome === "ok" || state.outcome === "refused");
    const isPrefilled = flight.leg?.isComputed === true;
    if (isOver || isPrefilled || flight.isTaken || flight.engine < 0) return;
    this.#host.fleet.abort(this.#host.clock, flight);
    // One that waits for its retry is with no engine meanwhile.
    if (state.kind === "waiting" || state.kind === "failed") flight.reset();
  }

  #finish(flight: Flight, { outcome, counts }: Finish): void {
    const { tokensAtEnd, tokensOfAll, ending } = flight;
    const isCut = counts === "answer" && (outcome === "failed" || outcome === "timeout");
    this.#host.close(flight, outcome, isCut ? tokensOfAll : tokensAtEnd);
    const failed = outcome === "timeout" ? "timed-out" : isCut ? "cut" : "lost";
    this.#host.ended(flight, outcome === "failed" || outcome === "timeout" ? failed : ending);
  }
}
