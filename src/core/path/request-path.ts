import type { Routed } from "../input/decision.ts";
import type { Fault } from "../endpoint/fault.ts";
import type { Hedging } from "./hedging/hedging.ts";
import type { AskRetry, PathEffect } from "./path-effect.ts";
import { DEFECT, type PathEvent, REROUTED, REROUTED_APART } from "./path-event.ts";
import type { FailedStage, PathRouter } from "./path-router.ts";
import { type PathState, READING } from "./path-state.ts";
import { transition } from "./transition.ts";

/** What a request does in its host: with sockets in a gateway, with simulated engines in a simulation. */
export interface PathHost {
  /** Carries out an effect. One that asks returns the event that answers it, or undefined where that comes later. */
  perform(effect: PerformedEffect): PathEvent | undefined;
  /** An effect threw; the others of its step are carried out all the same, and the request ends as after a defect. */
  threw(error: unknown): void;
  readonly router: PathRouter;
  /** As the router knows the request. */
  readonly routeId: string;
  /** Where a second endpoint may be asked. */
  readonly hedging: Hedging | undefined;
  /** Which part of the attempt under way failed; undefined where it has but one. */
  readonly failedStage: FailedStage | undefined;
  /** Of its attempts so far, those at other models before this one. */
  readonly attemptsBefore: number;
  /** The attempt under way failed, for the counts. */
  faulted(fault: Fault): void;
  /** It goes to this endpoint next, for its attempt failed. */
  decided(decision: Routed, fault: Fault): void;
}

/** What a host carries out; the others are the path's own. */
export type PerformedEffect = Exclude<PathEffect, AskRetry>;

/** The life of one request: holds its state, puts it through its transitions, and asks what is decided on its way. */
export class RequestPath {
  /** Who carries it out; another one where a second attempt goes on with it. */
  host: PathHost;
  state: PathState;

  /** `state`: where it begins. */
  constructor(host: PathHost, state: PathState = READING) {
    this.host = host;
    this.state = state;
  }

  dispatch(event: PathEvent): void {
    for (let next: PathEvent | undefined = event; next !== undefined;) next = this.#step(next);
  }

  /** Effects that ask stand last in a step, so that whatever they bring about meets the step's own state. */
  #step(event: PathEvent): PathEvent | undefined {
    const before = this.state;
    const { state, effects } = transition(before, event);
    this.state = state;
    let next: PathEvent | undefined;
    for (const effect of effects) {
      try {
        const answer = effect.kind === "ask-retry" ? this.#askRetry(effect.fault) : this.host.perform(effect);
        if (answer !== undefined && next !== DEFECT) next = answer;
      } catch (error) {
        this.host.threw(error);
        // A defect that changed nothing cannot be helped by another.
        if (event.kind !== "defect" || state !== before) next = DEFECT;
      }
    }
    return next;
  }

  /** The attempt failed before its client had a byte: a second endpoint has the request, or policy and router are asked. */
  #askRetry(fault: Fault): PathEvent {
    const host = this.host;
    host.faulted(fault);
    if (fault === "timeout") host.hedging?.drop("dropped");
    else if (host.hedging?.takesOver(fault) === true) return REROUTED;
    const attempts = this.state.attempts - host.attemptsBefore;
    const next = host.router.afterFault(host.routeId, fault, attempts, host.failedStage);
    if (next.kind === "give-up") return { kind: "denied", why: next.why };
    host.decided(next.decision, fault);
    return next.decision.prefill?.handoff === "prefill-first" ? REROUTED_APART : REROUTED;
  }
}
