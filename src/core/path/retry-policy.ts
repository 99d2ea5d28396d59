import type { Fault } from "../endpoint/fault.ts";
import type { StageDesk, StageKind, StageSettings } from "./stage-kind.ts";

const USUAL = { attemptsMax: 3, retryRatio: 0.2, retryBurst: 1_000 };

/** Retries, which every request has: the first of the catalogue. */
export const RETRIES = {
  name: "retries",
  settings: {
    attemptsMax: {
      kind: "count",
      min: 1,
      max: 16,
      usual: USUAL.attemptsMax,
      meaning: "Endpoints that one request may be sent to.",
    },
    retryRatio: {
      kind: "share",
      min: 0,
      max: 10,
      usual: USUAL.retryRatio,
      meaning: "Retries per request in the long run, beyond retryBurst.",
    },
    retryBurst: {
      kind: "count",
      min: 0,
      max: 1_000_000,
      usual: USUAL.retryBurst,
      meaning: "Retries that may come at once.",
    },
  },
  counts: {},
  open: (settings: StageSettings): RetryPolicy => new RetryPolicy(settings),
} as const satisfies StageKind<RetryPolicy>;

interface RetryOptions {
  readonly attemptsMax: number;
  readonly retryRatio: number;
  /** Saved up at most, and there at the start. */
  readonly retryBurst: number;
}

/** As they are set, and as usual where they are not. */
function retryOptions(settings: StageSettings): RetryOptions {
  return { ...USUAL, ...settings };
}

/** Why a request is not tried again: its time is over, it had all its attempts, or the budget is spent. */
export type RetryDenial = "time" | "attempts" | "budget";

/**
 * Whether a request whose attempt failed is tried at another endpoint. The budget keeps retries from multiplying an
 * overload: each request earns a fraction of a retry, each retry spends one, and no more than `burst` can be saved up.
 */
export class RetryPolicy implements StageDesk {
  #options: RetryOptions;
  #saved: number;

  constructor(settings: StageSettings) {
    this.#options = retryOptions(settings);
    this.#saved = this.#options.retryBurst;
  }

  /** Other bounds from now on; what is saved up beyond the new burst is lost, and none is given. */
  change(settings: StageSettings): void {
    this.#options = retryOptions(settings);
    this.#saved = Math.min(this.#options.retryBurst, this.#saved);
  }

  /** A request was sent, and earns its part of a retry. */
  sent(): void {
    this.#saved = Math.min(this.#options.retryBurst, this.#saved + this.#options.retryRatio);
  }

  /** Why a request is not tried again after so many attempts, or undefined when it may be. Spends nothing. */
  denial(fault: Fault, attempts: number, attemptsMax = this.#options.attemptsMax): RetryDenial | undefined {
    if (fault === "timeout") return "time";
    if (attempts >= attemptsMax) return "attempts";
    return this.#saved < 1 ? "budget" : undefined;
  }

  /** A retry is made that was not denied. */
  spend(): void {
    this.#saved -= 1;
  }

  /**
   * An answer that went on elsewhere made a token: it multiplied no overload, and a fleet that loses engines one by one
   * may go on so.
   */
  refund(): void {
    this.#saved = Math.min(this.#options.retryBurst, this.#saved + 1);
  }
}
