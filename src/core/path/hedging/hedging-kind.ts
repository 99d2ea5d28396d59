import { type Micros, MICROS_PER_MILLI } from "../../base/units.ts";
import type { NextPlace, PathRouter } from "../path-router.ts";
import type { StageDesk, StageKind, StageSettings } from "../stage-kind.ts";

const MILLIS_PER_DAY = 86_400_000;
const SHARE_USUAL = 0.05;
const BURST_USUAL = 10;

/** The budget that all requests of a router share for second endpoints. */
export class HedgeDesk implements StageDesk {
  readonly #budget: HedgeBudget;

  constructor(settings: StageSettings) {
    this.#budget = new HedgeBudget(optionsOf(settings));
  }

  sent(): void {
    this.#budget.earn();
  }

  change(settings: StageSettings): void {
    this.#budget.change(optionsOf(settings));
  }

  /** The first token of a request is late: whether a second endpoint gets it too, and which. Nobody is asked about twice. */
  ask(router: PathRouter, requestId: string): NextPlace {
    if (!this.#budget.allows) return { kind: "give-up", why: "budget" };
    if (!router.hasTaker(requestId, "any")) return { kind: "give-up", why: "no-endpoint" };
    const decision = router.again({ kind: "request-hedged", at: router.now(), requestId });
    if (decision.kind === "rejected") return { kind: "give-up", why: "no-endpoint" };
    this.#budget.spend();
    return { kind: "retry", decision };
  }
}

/** A request whose first token is late goes to a second endpoint as well. */
export const HEDGING = {
  name: "hedging",
  settings: {
    hedgeMillis: {
      kind: "millis",
      min: 1,
      max: MILLIS_PER_DAY,
      usual: undefined,
      meaning:
        "A stream without a token for this long is also sent to a second endpoint, and the slower one is aborted. Unset: never.",
      flag: {
        flags: "--hedge-after <millis>",
        meaning: "send requests that have no token after this time to a second engine too, as limits.hedgeMillis does",
        asks: ["hedged after", "ms"],
      },
    },
    hedgeShareMax: {
      kind: "share",
      min: 0,
      max: 1,
      usual: SHARE_USUAL,
      meaning: "Share of requests that may go to a second endpoint that way, beyond hedgeBurst.",
      flag: {
        flags: "--hedge-share <share>",
        meaning: "share of requests for which this is allowed, beyond the first few",
      },
    },
    hedgeBurst: {
      kind: "count",
      min: 0,
      max: 100_000,
      usual: BURST_USUAL,
      meaning: "Requests that may do so at once.",
    },
  },
  counts: {
    hedges: {
      label: "end",
      metric: "hedges_total",
      meaning: "Requests also sent to a second endpoint, by outcome.",
      row: "hedged",
    },
    hedgesDenied: {
      label: "reason",
      metric: "hedges_denied_total",
      meaning: "Late requests that were not sent to a second endpoint, by reason.",
      row: "hedged",
      before: "denied: ",
    },
  },
  open: (settings: StageSettings): HedgeDesk => new HedgeDesk(settings),
} as const satisfies StageKind<HedgeDesk>;

/** Without a token for so long at an endpoint that is well, a request goes to a second one too; Infinity for never. */
export function hedgeAfter({ hedgeMillis = Infinity }: StageSettings): Micros {
  return hedgeMillis * MICROS_PER_MILLI;
}

function optionsOf({
  hedgeShareMax: shareMax = SHARE_USUAL,
  hedgeBurst: burst = BURST_USUAL,
}: StageSettings): HedgeOptions {
  return { shareMax, burst };
}

/** How many requests may go to a second endpoint. */
export interface HedgeOptions {
  /** Share of requests in the long run, in [0, 1]. */
  readonly shareMax: number;
  /** Requests beyond that share that may go at once, as when one endpoint becomes slow; there at the start. */
  readonly burst: number;
}

/** Never more than `burst + shareMax * requests` requests go to a second endpoint. */
class HedgeBudget {
  #options: HedgeOptions;
  #saved: number;

  constructor(options: HedgeOptions) {
    this.#options = options;
    this.#saved = options.burst;
  }

  /** Other bounds from now on; what is saved up beyond the new burst is lost, and none is given. */
  change(options: HedgeOptions): void {
    this.#options = options;
    this.#saved = Math.min(options.burst, this.#saved);
  }

  get allows(): boolean {
    return this.#saved >= 1;
  }

  /** A request was sent. */
  earn(): void {
    const { burst, shareMax } = this.#options;
    this.#saved = Math.min(burst, this.#saved + shareMax);
  }

  spend(): void {
    this.#saved -= 1;
  }
}
