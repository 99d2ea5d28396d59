import type { Routed } from "../../input/decision.ts";
import type { Fault } from "../../endpoint/fault.ts";
import type { Micros } from "../../base/units.ts";
import type { GiveUpReason, PathRouter } from "../path-router.ts";
import { type PathEvent, REROUTED } from "../path-event.ts";
import type { PathState } from "../path-state.ts";
import type { PathStage } from "../stage.ts";
import { HEDGING } from "./hedging-kind.ts";

/**
 * How it ended that two endpoints had a request. won, lost: the second one's answer began first, or the first one's.
 * failed: the second one failed. took-over: the first one failed. dropped: the request was over before either.
 */
export type HedgeEnd = "won" | "lost" | "failed" | "took-over" | "dropped";

/** What a host does with a second endpoint. */
export interface HedgeHost {
  readonly router: PathRouter;
  /** As the router knows the request. */
  readonly routeId: string;
  /** From when on a first token is late. */
  readonly afterMicros: Micros;
  now(): Micros;
  sendSecond(decision: Routed): void;
  abortSecond(): void;
  /** The second endpoint's attempt is the request's from now on, and what the next effect `send` is about. */
  takeSecond(decision: Routed): void;
  /** The first endpoint's attempt is left for the second one's answer: event `replaced`. */
  overtaken(): void;
  /** For the counts: no second endpoint gets it, or how that ended. */
  denied(why: GiveUpReason): void;
  settled(end: HedgeEnd): void;
}

/** A request whose first token is late, at a second endpoint as well: who has it in the end, and what the router learns. */
export class Hedging implements PathStage {
  readonly #host: HedgeHost;
  #asked = false;
  #second: Routed | undefined;

  constructor(host: HedgeHost) {
    this.#host = host;
  }

  /** A second endpoint may be asked: none was, and nothing came. */
  helpsAfter(state: PathState): Micros {
    if (this.#asked) return Infinity;
    const isSilent = state.kind === "waiting" || (state.kind === "holding" && state.content === "silent");
    return isSilent ? this.#host.afterMicros : Infinity;
  }

  /** Two endpoints have it: the second one takes over where the first is left. */
  get standsBy(): boolean {
    return this.#second !== undefined;
  }

  late(): void {
    this.#asked = true;
    const { router, routeId } = this.#host;
    const asked = router.sharedOf(HEDGING).ask(router, routeId);
    if (asked.kind === "give-up") return this.#host.denied(asked.why);
    this.#second = asked.decision;
    this.#host.sendSecond(asked.decision);
  }

  /** The second endpoint's answer begins. */
  secondBegan(): void {
    const second = this.#settle("won");
    if (second === undefined) return;
    this.#host.takeSecond(second);
    this.#host.overtaken();
  }

  secondFailed(fault?: Fault): void {
    if (this.#settle("failed", fault) !== undefined) this.#host.abortSecond();
  }

  /** The first endpoint answers. */
  firstToken(): void {
    this.#drop("lost");
  }

  answers(): void {
    this.#drop("lost");
  }

  ended(): void {
    this.#drop("dropped");
  }

  /** The first endpoint failed: a second one has the request, if one was asked and there is time. */
  takesOver(fault: Fault): PathEvent | undefined {
    if (fault === "timeout") this.#drop("dropped");
    const second = this.#settle("took-over", fault);
    if (second === undefined) return undefined;
    this.#host.takeSecond(second);
    return REROUTED;
  }

  #drop(end: "lost" | "dropped"): void {
    if (this.#settle(end) !== undefined) this.#host.abortSecond();
  }

  #settle(end: HedgeEnd, fault?: Fault): Routed | undefined {
    const second = this.#second;
    if (second === undefined) return undefined;
    this.#second = undefined;
    const { router, routeId: requestId } = this.#host;
    this.#host.settled(end);
    const winner = end === "won" || end === "took-over" ? "second" : "first";
    const failed = fault === undefined ? {} : { fault };
    router.accept({ kind: "hedge-settled", at: this.#host.now(), requestId, winner, ...failed });
    return second;
  }
}
