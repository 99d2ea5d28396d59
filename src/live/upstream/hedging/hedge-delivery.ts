import type { Fault } from "#core/endpoint/fault.ts";
import type { DeliveryState, Delivery } from "../../answer/answer.ts";
import type { ForwardedRequest } from "../forwarded-request.ts";

/** Is notified, once, of what a second endpoint's answer turned out to be. */
export interface HedgeVerdict {
  /** There is something for the client. */
  begins(): void;
  fails(fault: Fault): void;
}

/**
 * Reads a second endpoint's answer until it is known what it is; nothing of it goes to the client from here. Whatever
 * would go out, or is an answer that no other endpoint would better, is its beginning.
 */
export class HedgeDelivery implements Delivery {
  readonly hidesUsage = false;
  readonly cachedTokens = undefined;
  readonly answerReader = undefined;
  readonly keptTokens = undefined;
  readonly keptEvents = undefined;
  readonly judge = undefined;
  readonly continues = false;
  readonly #exchange: ForwardedRequest;
  readonly #verdict: HedgeVerdict;
  state: DeliveryState = "held";

  constructor(exchange: ForwardedRequest, verdict: HedgeVerdict) {
    this.#exchange = exchange;
    this.#verdict = verdict;
  }

  get writer() {
    return this.#exchange.writer;
  }
  get limits() {
    return this.#exchange.limits;
  }
  get counters() {
    return this.#exchange.shared.counters;
  }
  get dialect() {
    return this.#exchange.route.dialect;
  }

  headers(): string[] {
    return [];
  }
  named(piece: Buffer): Buffer {
    return piece;
  }
  readonly takesChunks = false;
  write(): void {}
  writeChunks(): void {}
  progress(): void {}

  firstToken(): void {
    this.#begins();
  }
  holdFull(): void {
    this.#begins();
  }
  firstBytes(): void {
    this.#begins();
  }
  letThrough(): void {
    this.#begins();
  }
  marked(): void {
    this.#begins();
  }
  completed(): void {
    this.#begins();
  }
  proveEnd(): void {
    this.#begins();
  }
  tokensUpTo(): void {
    this.#begins();
  }
  engineError(): void {
    this.#fails("status");
  }
  broke(fault: Fault): void {
    this.#fails(fault);
  }
  diverged(): void {
    this.#fails("garbage");
  }
  attemptFailed(fault: Fault): void {
    this.#fails(fault);
  }

  #begins(): void {
    if (this.state === "over") return;
    this.state = "over";
    this.#verdict.begins();
  }

  #fails(fault: Fault): void {
    if (this.state === "over") return;
    this.state = "over";
    this.#verdict.fails(fault);
  }
}
