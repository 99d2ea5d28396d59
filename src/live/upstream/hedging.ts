import type { Routed } from "#core/input/decision.ts";
import { type HedgeEnd, type HedgeHost, Hedging } from "#core/path/hedging/hedging.ts";
import { STANDBY_ANSWERS } from "#core/path/path-event.ts";
import type { GiveUpReason, PathRouter } from "#core/path/path-router.ts";
import type { Micros } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import { countUp } from "../base/gateway-counters.ts";
import type { ForwardedRequest } from "./forwarded-request.ts";
import { Hedge } from "./hedge.ts";
import type { SentContent } from "../request/engine-body.ts";

/** The attempts of a request, of which one at a second endpoint may become the one under way. */
interface HedgedAttempts {
  readonly content: SentContent;
  /** The second endpoint has the request for good; nothing of its answer was passed on. */
  decided(routed: Routed): void;
}

/** A request's second endpoint as the gateway has it: an attempt whose answer is kept until it is known who answers. */
export class SecondAttempt implements HedgeHost {
  readonly hedging: Hedging = new Hedging(this);
  readonly #exchange: ForwardedRequest;
  readonly #first: HedgedAttempts;
  #second: Hedge | undefined;
  #taken: Hedge | undefined;

  constructor(exchange: ForwardedRequest, first: HedgedAttempts) {
    this.#exchange = exchange;
    this.#first = first;
  }

  get router(): PathRouter {
    return this.#exchange.router;
  }
  get routeId(): string {
    return this.#exchange.routeId;
  }
  now(): Micros {
    return nowMicros();
  }

  sendSecond(decision: Routed): void {
    const second = new Hedge(this.#exchange, decision, {
      begins: () => this.hedging.secondBegan(),
      fails: (fault) => this.hedging.secondFailed(fault),
    });
    this.#second = second;
    second.send(this.#first.content);
  }

  abortSecond(): void {
    this.#second?.abort();
    this.#second = undefined;
  }

  takeSecond(decision: Routed): void {
    this.#taken = this.#second;
    this.#second = undefined;
    this.#first.decided(decision);
  }

  /** The second endpoint's attempt, once, where that is the request's from now on. */
  taken(): Hedge | undefined {
    const taken = this.#taken;
    this.#taken = undefined;
    return taken;
  }

  overtaken(): void {
    this.#exchange.dispatch(STANDBY_ANSWERS);
  }

  denied(why: GiveUpReason): void {
    countUp(this.#exchange.shared.counters.hedgesDenied, why);
  }

  settled(end: HedgeEnd): void {
    countUp(this.#exchange.shared.counters.hedges, end);
  }

  sweep(at: Micros): void {
    this.#second?.sweep(at);
  }
}

/** Undefined where no second endpoint is ever asked for such a request. */
export function secondOf(exchange: ForwardedRequest, first: HedgedAttempts): SecondAttempt | undefined {
  const { waits, stream, cascade } = exchange;
  return waits.hedgeMicros < Infinity && stream && cascade === undefined
    ? new SecondAttempt(exchange, first)
    : undefined;
}
