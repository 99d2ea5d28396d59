import type { Fault } from "../endpoint/fault.ts";

export interface RetryOptions {
  /** Endpoints that one request may be sent to, at least 1. */
  readonly attemptsMax: number;
  /** Times that one answer may go on elsewhere after it broke, at least 0. */
  readonly continuationsMax: number;
  /** Retries that each request earns, in [0, 10]. */
  readonly ratio: number;
  /** Retries that can be saved up, and are there at the start. */
  readonly burst: number;
}

/** Why a request is not tried again: its time is over, it had all its attempts, or the budget is spent. */
export type RetryDenial = "time" | "attempts" | "budget";

/**
 * Whether a request whose attempt failed is tried at another endpoint. The budget keeps retries from multiplying an
 * overload: each request earns a fraction of a retry, each retry spends one, and no more than `burst` can be saved up.
 */
export class RetryPolicy {
  #options: RetryOptions;
  #saved: number;

  constructor(options: RetryOptions) {
    this.#options = options;
    this.#saved = options.burst;
  }

  /** Other bounds from now on; what is saved up beyond the new burst is lost, and none is given. */
  change(options: RetryOptions): void {
    this.#options = options;
    this.#saved = Math.min(options.burst, this.#saved);
  }

  /** A request arrived. */
  earn(): void {
    this.#saved = Math.min(this.#options.burst, this.#saved + this.#options.ratio);
  }

  /** Why a request is not tried again after so many attempts, or undefined when it may be. Spends nothing. */
  denial(fault: Fault, attempts: number): RetryDenial | undefined {
    if (fault === "timeout") return "time";
    if (attempts >= this.#options.attemptsMax) return "attempts";
    return this.#saved < 1 ? "budget" : undefined;
  }

  /**
   * Why an answer that the client has a part of does not go on elsewhere, having gone on so many times before, or
   * undefined when it may. It is paid for as a retry is, and gets that back with its first token.
   */
  continuationDenial(fault: Fault, continuations: number): RetryDenial | undefined {
    if (fault === "timeout") return "time";
    if (continuations >= this.#options.continuationsMax) return "attempts";
    return this.#saved < 1 ? "budget" : undefined;
  }

  /** A retry is made that was not denied. */
  spend(): void {
    this.#saved -= 1;
  }

  /**
   * A continuation made a token: it multiplied no overload, and a fleet that loses engines one by one may go on with
   * it.
   */
  refund(): void {
    this.#saved = Math.min(this.#options.burst, this.#saved + 1);
  }
}
