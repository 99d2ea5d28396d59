import type { RoutedPrefill, Routed } from "../../input/decision.ts";
import type { EndpointId } from "../../endpoint/endpoint.ts";
import type { Outcome } from "../../endpoint/outcome.ts";
import type { Micros } from "../../base/units.ts";
import { AHEAD_DONE, type PathEvent } from "../path-event.ts";
import type { FailureOf, PathRouter } from "../path-router.ts";
import type { PathStage } from "../stage.ts";

/**
 * What of an attempt failed: the endpoint that answers; the one that computes the prompt; or what went from one to the
 * other.
 */
type FailedPart = "answer" | "prefill" | "transfer";

/** What a host does with a prompt that is computed elsewhere. */
export interface PrefillHost {
  readonly router: PathRouter;
  /** As the router knows the request. */
  readonly routeId: string;
  now(): Micros;
  dispatch(event: PathEvent): void;
  /** Blocks wait where the prompt was computed, and nobody comes for them; `by`: who answers now, if anybody. */
  strand(by: EndpointId | undefined): void;
}

/**
 * A decision by which one endpoint computes the prompt and another one answers: with whom the request is, which of both
 * failed, and whether blocks wait that nobody will fetch.
 */
export class PrefillElsewhere implements PathStage {
  readonly binds = true;
  readonly routed: Routed;
  readonly prefill: RoutedPrefill;
  /** Prompt tokens that the first endpoint had cached, once that is known. */
  cachedTokens: number | undefined;
  readonly #host: PrefillHost;
  /** With whom the request is; who gets it `together` with the other one is not looked at here. */
  #underWay: "prefill" | "answer" = "prefill";
  #failed: FailedPart | undefined;
  #waits = false;

  constructor(routed: Routed, prefill: RoutedPrefill, host: PrefillHost) {
    this.routed = routed;
    this.prefill = prefill;
    this.#host = host;
  }

  /** Both endpoints have it at once. */
  get isTogether(): boolean {
    return this.prefill.handoff === "together";
  }
  get isPrefilling(): boolean {
    return this.#underWay === "prefill";
  }
  /** The endpoint that the request is with. */
  get endpoint(): EndpointId {
    return this.isPrefilling ? this.prefill.endpoint : this.routed.endpoint;
  }
  get failed(): FailedPart {
    return this.#failed ?? this.#underWay;
  }
  get failureOf(): FailureOf | undefined {
    return FAILURES[this.failed];
  }
  /** Blocks wait at the first endpoint for somebody to fetch them. */
  get waits(): boolean {
    return this.#waits;
  }

  /** The endpoint that answers has the request. */
  sentOn(): void {
    this.#underWay = "answer";
  }

  /** The prompt is computed; `waits`: its blocks are kept until somebody comes for them. */
  prefilled(cachedTokens: number | undefined, waits: boolean): void {
    this.cachedTokens = cachedTokens;
    this.#waits = waits;
    if (this.isTogether) this.aheadDone();
    else this.#host.dispatch(AHEAD_DONE);
  }

  aheadDone(): void {
    const { router, routeId: requestId } = this.#host;
    router.accept({ kind: "prefill-finished", at: this.#host.now(), requestId, cachedTokens: this.cachedTokens });
  }

  /** The first endpoint failed while the other one has the request too. */
  prefillFailed(): void {
    this.#failed = "prefill";
  }

  /** The endpoint that answers could not fetch the blocks. */
  notFetched(): void {
    if (!this.isPrefilling && this.#waits) this.#failed = "transfer";
  }

  /** It has the blocks: it answers. */
  firstToken(): void {
    this.#waits = false;
  }

  /** This decision is over; `by`: who answers now, if anybody. */
  close(by: EndpointId | undefined): void {
    if (this.#waits) this.#host.strand(by);
    this.#waits = false;
  }

  ended(outcome: Outcome): void {
    if (outcome === "ok") this.#waits = false;
    this.close(undefined);
  }
}

const FAILURES: Readonly<Record<FailedPart, FailureOf | undefined>> = {
  answer: undefined,
  prefill: (at, requestId, fault) => ({ kind: "prefill-failed", at, requestId, fault }),
  transfer: (at, requestId) => ({ kind: "transfer-failed", at, requestId }),
};
