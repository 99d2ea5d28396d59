import type { PathRouter } from "#core/path/path-router.ts";
import { type Micros, MICROS_PER_MILLI } from "#core/base/units.ts";
import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { GatewayLimits } from "../http/limits.ts";

export interface TokenProgressOptions {
  readonly router: Pick<PathRouter, "accept">;
  readonly limits: GatewayLimits;
  readonly counters: GatewayCounters;
  /** As the router knows the request. */
  readonly requestId: string;
}

/** Output tokens of one attempt, reported to the router at the first and then by count or by time. */
export class TokenProgress {
  readonly #options: TokenProgressOptions;
  /** Of the first token; undefined before it. */
  firstAt: Micros | undefined;
  seen = 0;
  #reported = 0;
  #reportedAt: Micros = 0;

  constructor(options: TokenProgressOptions) {
    this.#options = options;
  }

  first(at: Micros): void {
    this.firstAt = at;
    this.#reportedAt = at;
    this.seen = 1;
    this.#reported = 1;
    this.#options.router.accept({ kind: "first-token", at, requestId: this.#options.requestId });
  }

  /** Whether so many tokens are worth a report. */
  reaches(seen: number): boolean {
    this.seen = seen;
    return seen - this.#reported >= this.#options.limits.progressTokens;
  }

  sweep(at: Micros): void {
    const due = at - this.#reportedAt >= this.#options.limits.progressMillis * MICROS_PER_MILLI;
    if (this.seen > this.#reported && due) this.report(at);
  }

  report(at: Micros): void {
    const { router, counters, requestId } = this.#options;
    this.#reported = this.seen;
    this.#reportedAt = at;
    counters.progressInputs++;
    router.accept({ kind: "progress", at, requestId, outputTokens: this.seen });
  }
}

/** What of a request its tokens are reported by. */
interface ProgressedRequest {
  readonly router: TokenProgressOptions["router"];
  readonly limits: GatewayLimits;
  readonly routeId: string;
  readonly shared: { readonly counters: GatewayCounters };
}

/** Of a request's next attempt. */
export function progressOf({ router, shared, limits, routeId: requestId }: ProgressedRequest): TokenProgress {
  return new TokenProgress({ router, limits, counters: shared.counters, requestId });
}
