import type { Routed } from "../input/decision.ts";
import type { Fault } from "../endpoint/fault.ts";
import type { AskResume, AskRetry, PathEffect, ReportAhead, ReportContinued } from "./path-effect.ts";
import { DEFECT, type PathEvent, REROUTED, REROUTED_AHEAD, ROUTED, ROUTED_AHEAD } from "./path-event.ts";
import type { PathRouter } from "./path-router.ts";
import { type PathState, READING } from "./path-state.ts";
import type { PathStage, StageAnswer } from "./stage.ts";
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
  /** What its life has beside attempts, one after another; the first that has an answer gives it. */
  readonly stages: readonly PathStage[];
  /** The attempt under way failed, for the counts. */
  faulted(fault: Fault): void;
  /** It goes to this endpoint next, for its attempt failed. */
  retried(decision: Routed, fault: Fault): void;
}

/** What a host carries out; the others are the path's own. */
export type PerformedEffect = Exclude<PathEffect, AskRetry | AskResume | ReportAhead | ReportContinued>;

/** The life of one request: holds its state, puts it through its transitions, and asks what is decided on its way. */
export class RequestPath {
  /** Who carries it out; another one where a second attempt goes on with it. */
  host: PathHost;
  state: PathState;
  /** Of its attempts so far, those of an answer that was given up as a whole. */
  #attemptsBefore = 0;

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
    if (event.kind === "replaced" && event.by === "anew" && state !== before) this.#attemptsBefore = before.attempts;
    let next: PathEvent | undefined;
    for (const effect of effects) {
      try {
        const answer = this.#perform(effect);
        if (answer !== undefined && next !== DEFECT) next = answer;
      } catch (error) {
        this.host.threw(error);
        // A defect that changed nothing cannot be helped by another.
        if (event.kind !== "defect" || state !== before) next = DEFECT;
      }
    }
    return next;
  }

  /** Attempts at the answer under way, this one included. */
  get attempts(): number {
    return this.state.attempts - this.#attemptsBefore;
  }

  /** The router chose an endpoint. */
  routed(decision: Routed): void {
    this.dispatch(decision.sentFirst !== undefined ? ROUTED_AHEAD : ROUTED);
  }

  /** The first token is late. */
  late(): void {
    for (const stage of this.host.stages) stage.late?.();
  }

  #perform(effect: PathEffect): PathEvent | undefined {
    const { host } = this;
    switch (effect.kind) {
      case "ask-retry":
        return this.#askRetry(effect.fault);
      case "ask-resume":
        return this.#askResume(effect.fault);
      case "report-ahead":
        for (const stage of host.stages) stage.aheadDone?.();
        return undefined;
      case "report-continued":
        for (const stage of host.stages) stage.wentOn?.(effect.fault);
        return undefined;
      case "report-first-token":
        for (const stage of host.stages) stage.firstToken?.();
        break;
      case "write-held":
      case "write-whole":
        for (const stage of host.stages) stage.answers?.();
        break;
      case "finish":
        for (const stage of host.stages) stage.ended?.(effect.outcome);
        break;
      default:
    }
    return host.perform(effect);
  }

  /** The attempt failed before its client had a byte: a stage goes on with the request, or policy and router are asked. */
  #askRetry(fault: Fault): PathEvent | undefined {
    const { host } = this;
    host.faulted(fault);
    const event = this.#takenOver(fault, true) ?? this.#takenOver(fault, false);
    if (event !== undefined) return event === "later" ? undefined : event;
    this.attemptFailed(fault);
    return this.asked(fault);
  }

  /** By a stage by which another attempt stands by, or by one without. */
  #takenOver(fault: Fault, standsBy: boolean): StageAnswer | undefined {
    for (const stage of this.host.stages) {
      const event = (stage.standsBy === true) === standsBy ? stage.takesOver?.(fault) : undefined;
      if (event !== undefined) return event;
    }
    return undefined;
  }

  /** The router gets to know that the attempt failed. */
  attemptFailed(fault: Fault): void {
    const { router, routeId, stages } = this.host;
    router.attemptFailed(routeId, fault, stages.find((stage) => stage.failureOf !== undefined)?.failureOf);
  }

  /** Where the request goes then, as policy and router have it: what follows for the path. */
  asked(fault: Fault): PathEvent {
    const { host } = this;
    const next = host.router.retry(host.routeId, fault, this.attempts);
    if (next.kind === "give-up") return { kind: "denied", why: next.why };
    host.retried(next.decision, fault);
    return next.decision.sentFirst !== undefined ? REROUTED_AHEAD : REROUTED;
  }

  #askResume(fault: Fault): PathEvent | undefined {
    for (const stage of this.host.stages) {
      const event = stage.goesOn?.(fault);
      if (event !== undefined) return event === "later" ? undefined : event;
    }
    return { kind: "denied", why: "no-endpoint" };
  }
}
