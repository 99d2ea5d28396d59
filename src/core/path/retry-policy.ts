import type { Fault } from "../endpoint/fault.ts";
import type { RouteRequest } from "../request/request.ts";
import type { StageKind, StageSettings, StageTerms } from "./stage-kind.ts";

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
  budget: ({ retryRatio = USUAL.retryRatio, retryBurst = USUAL.retryBurst }: StageSettings) => ({
    share: retryRatio,
    burst: retryBurst,
  }),
  open: (terms: StageTerms): RetryPolicy => new RetryPolicy(terms),
} as const satisfies StageKind<RetryPolicy>;

/** Why a request is not tried again, in words for the log. */
export const RETRY_DENIALS = {
  time: "its time is over",
  attempts: "it had all its attempts",
  budget: "the retry budget is spent",
} as const;
export type RetryDenial = keyof typeof RETRY_DENIALS;

/** An attempt that failed, or that may have to go elsewhere. */
export interface LeavingAttempt {
  readonly fault: Fault;
  /** As the router knows it; undefined where it knows it no more. */
  readonly request: RouteRequest | undefined;
  /** Attempts so far; where an answer goes on that broke, the times that it did. */
  readonly times: number;
  /** And how often it may; undefined of attempts before the client has a byte. */
  readonly timesMax: number | undefined;
}

/**
 * Whether a request whose attempt failed is tried at another endpoint. The budget keeps retries from multiplying an
 * overload: each request earns a fraction of a retry, each retry spends one, and no more than a burst can be saved up.
 */
export class RetryPolicy {
  readonly #terms: StageTerms;

  constructor(terms: StageTerms) {
    this.#terms = terms;
  }

  /**
   * Why a request is not tried again, or undefined when it may be. Spends nothing. It is also asked of an attempt that
   * waits, whether another endpoint would get the request (always with the fault `hung`), and of a stream that goes on
   * elsewhere (`timesMax` is there).
   */
  denial({ fault, times, timesMax }: LeavingAttempt): RetryDenial | undefined {
    if (fault === "timeout") return "time";
    if (times >= (timesMax ?? this.#terms.settings["attemptsMax"] ?? USUAL.attemptsMax)) return "attempts";
    return this.#terms.allows ? undefined : "budget";
  }

  /** A retry is made that was not denied. */
  spend(): void {
    this.#terms.spend();
  }

  /**
   * An answer that went on elsewhere made a token: it multiplied no overload, and a fleet that loses engines one by one
   * may go on so.
   */
  refund(): void {
    this.#terms.refund();
  }
}
