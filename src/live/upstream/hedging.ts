import type { Routed } from "#core/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { HedgeEnd } from "#core/retry/ask-hedge.ts";
import type { Micros } from "#core/units.ts";
import { nowMicros } from "../clock.ts";
import { countUp } from "../metrics/gateway-counters.ts";
import type { Exchange } from "../request/exchange.ts";
import { OVERTAKEN } from "#core/path/path-event.ts";
import { Hedge } from "./hedge.ts";
import type { SentContent } from "./open-attempt.ts";

/** The attempts of a request, of which one at a second endpoint may become the one under way. */
export interface HedgedAttempts {
  readonly content: SentContent;
  /** The second endpoint has the request for good; nothing of its answer was passed on. */
  decided(routed: Routed): void;
}

/** Undefined where no second endpoint is ever asked for such a request. */
export function hedgingOf(exchange: Exchange, first: HedgedAttempts): Hedging | undefined {
  const { waits, stream, cascade } = exchange;
  return waits.hedgeMicros < Infinity && stream && cascade === undefined ? new Hedging(exchange, first) : undefined;
}

/** A request whose first token is late, at a second endpoint as well: who has it in the end, and what the router learns. */
export class Hedging {
  readonly #exchange: Exchange;
  readonly #first: HedgedAttempts;
  #asked = false;
  #hedge: Hedge | undefined;
  #taken: Hedge | undefined;

  constructor(exchange: Exchange, first: HedgedAttempts) {
    this.#exchange = exchange;
    this.#first = first;
  }

  /** A second endpoint may be asked: none was, and nothing came. */
  get mayBegin(): boolean {
    const { state } = this.#exchange;
    return !this.#asked && (state.kind === "waiting" || (state.kind === "holding" && state.content === "silent"));
  }

  /** Two endpoints have it: the second one takes over where the first is left. */
  get underWay(): boolean {
    return this.#hedge !== undefined;
  }

  begin(): void {
    this.#asked = true;
    const { context, routeId } = this.#exchange;
    const { seat, counters } = context;
    const asked = seat.hedge(routeId);
    if (asked.kind === "give-up") return countUp(counters.hedgesDenied, asked.why);
    const hedge = new Hedge(this.#exchange, asked.decision, {
      begins: () => {
        this.#settle("won");
        this.#takeOver(hedge);
        this.#exchange.dispatch(OVERTAKEN);
      },
      fails: (fault) => this.#settle("failed", fault),
    });
    this.#hedge = hedge;
    hedge.send(this.#first.content);
  }

  /** The first endpoint answers, or the request is over. */
  drop(end: "lost" | "dropped"): void {
    if (this.#hedge !== undefined) this.#settle(end);
  }

  /** The first endpoint failed; false where no second one has the request. */
  takesOver(fault: Fault): boolean {
    const hedge = this.#hedge;
    if (hedge === undefined) return false;
    this.#settle("took-over", fault);
    this.#takeOver(hedge);
    return true;
  }

  /** The second endpoint's attempt, once, where that is the request's from now on. */
  taken(): Hedge | undefined {
    const taken = this.#taken;
    this.#taken = undefined;
    return taken;
  }

  sweep(at: Micros): void {
    this.#hedge?.sweep(at);
  }

  #takeOver(hedge: Hedge): void {
    this.#taken = hedge;
    this.#first.decided(hedge.routed);
  }

  #settle(end: HedgeEnd, fault?: Fault): void {
    const hedge = this.#hedge;
    this.#hedge = undefined;
    const { context, routeId: requestId } = this.#exchange;
    countUp(context.counters.hedges, end);
    const winner = end === "won" || end === "took-over" ? "second" : "first";
    context.seat.accept({
      kind: "hedge-settled",
      at: nowMicros(),
      requestId,
      winner,
      ...(fault !== undefined && { fault }),
    });
    if (winner === "first") hedge?.abort();
  }
}
