import type { Fault } from "./fault.ts";
import type { Micros } from "../units.ts";

/** closed: serves. open: left alone until its pause is over. half-open: one request at a time may try it. */
export type BreakerState = "closed" | "open" | "half-open";

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failuresMax: number;
  /** First pause; doubles with each failed probe. */
  readonly pauseMicros: number;
  readonly pauseMicrosMax: number;
  /** Pause after the endpoint said that it is full. It is healthy, so this neither counts nor doubles. */
  readonly saturatedPauseMicros: number;
}

export const BREAKER_DEFAULTS: BreakerOptions = {
  failuresMax: 3,
  pauseMicros: 1_000_000,
  pauseMicrosMax: 30_000_000,
  saturatedPauseMicros: 200_000,
};

/**
 * Keeps requests away from an endpoint that fails, from what happened to requests alone: a vLLM that drains or whose
 * engine died answers /health with 200. A draining endpoint opens it at once, any other fault after `failuresMax` in a
 * row. It has no clock: the time is an argument.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  #failures = 0;
  #openUntil: Micros = 0;
  #pauseMicros: number;
  #tripped = false;
  #probing = false;

  constructor(options: BreakerOptions) {
    this.#options = options;
    this.#pauseMicros = options.pauseMicros;
  }

  state(at: Micros): BreakerState {
    if (at < this.#openUntil) return "open";
    return this.#tripped ? "half-open" : "closed";
  }

  /** Whether a request may be sent there now. */
  allows(at: Micros): boolean {
    const state = this.state(at);
    return state === "closed" || (state === "half-open" && !this.#probing);
  }

  /** A request was sent; in the half-open state it is the probe. */
  sent(at: Micros): void {
    if (this.state(at) === "half-open") this.#probing = true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#tripped = false;
    this.#probing = false;
    this.#openUntil = 0;
    this.#pauseMicros = this.#options.pauseMicros;
  }

  /** The request ended without saying anything about the endpoint, for example because the client left. */
  undecided(): void {
    this.#probing = false;
  }

  failed(at: Micros, fault: Fault): void {
    if (fault === "saturated") {
      this.#probing = false;
      this.#openUntil = Math.max(this.#openUntil, at + this.#options.saturatedPauseMicros);
      return;
    }
    this.#failures++;
    const failedProbe = this.#tripped && at >= this.#openUntil;
    this.#probing = false;
    if (!failedProbe && fault !== "draining" && this.#failures < this.#options.failuresMax) return;
    if (this.#tripped && !failedProbe) return;
    if (failedProbe) this.#pauseMicros = Math.min(this.#pauseMicros * 2, this.#options.pauseMicrosMax);
    this.#tripped = true;
    this.#openUntil = at + this.#pauseMicros;
  }
}
