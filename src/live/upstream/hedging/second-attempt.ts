import type { Routed } from "#core/input/decision.ts";
import { type HedgeEnd, type HedgeHost, Hedging } from "#core/path/hedging/hedging.ts";
import { hedgeAfter } from "#core/path/hedging/hedging-kind.ts";
import { STANDBY_ANSWERS } from "#core/path/path-event.ts";
import type { GiveUpReason, PathRouter } from "#core/path/path-router.ts";
import type { Micros } from "#core/base/units.ts";
import { nowMicros } from "../../base/clock.ts";
import { countUp } from "../../base/gateway-counters.ts";
import type { ForwardedRequest } from "../forwarded-request.ts";
import { Hedge } from "./hedge.ts";
import type { ForwardedAttempts, StandbyAttempts, StandbyOf } from "../stage-performer.ts";

/** A request's second endpoint as the gateway has it: an attempt whose answer is kept until it is known who answers. */
class SecondAttempt implements HedgeHost, StandbyAttempts {
  readonly stage: Hedging = new Hedging(this);
  readonly #exchange: ForwardedRequest;
  readonly #first: ForwardedAttempts;
  #second: Hedge | undefined;
  #taken: Hedge | undefined;

  constructor(exchange: ForwardedRequest, first: ForwardedAttempts) {
    this.#exchange = exchange;
    this.#first = first;
  }

  get router(): PathRouter {
    return this.#exchange.router;
  }
  get routeId(): string {
    return this.#exchange.routeId;
  }
  get afterMicros(): Micros {
    const { hedgeMillis } = this.#exchange.limits;
    return hedgeAfter({ hedgeMillis });
  }
  now(): Micros {
    return nowMicros();
  }

  sendSecond(decision: Routed): void {
    const second = new Hedge(this.#exchange, decision, {
      begins: () => this.stage.secondBegan(),
      fails: (fault) => this.stage.secondFailed(fault),
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
export const secondOf: StandbyOf = (exchange, first) => {
  const { limits, stream, judge } = exchange;
  return limits.hedgeMillis !== undefined && stream && judge === undefined
    ? new SecondAttempt(exchange, first)
    : undefined;
};
