import { type Micros, MICROS_PER_MILLI } from "../../base/units.ts";
import type { NextPlace, PathRouter } from "../path-router.ts";
import type { StageKind, StageSettings, StageTerms } from "../stage-kind.ts";

const MILLIS_PER_DAY = 86_400_000;
const SHARE_USUAL = 0.05;
const BURST_USUAL = 10;

/** The budget that all requests of a router share for second endpoints. */
export class HedgeBudget {
  readonly #terms: StageTerms;

  constructor(terms: StageTerms) {
    this.#terms = terms;
  }

  /** The first token of a request is late: whether a second endpoint gets it too, and which. Nobody is asked about twice. */
  ask(router: PathRouter, requestId: string): NextPlace {
    if (!this.#terms.allows) return { kind: "give-up", why: "budget" };
    if (!router.hasTaker(requestId, "any")) return { kind: "give-up", why: "no-endpoint" };
    const decision = router.again({ kind: "request-hedged", at: router.now(), requestId });
    if (decision.kind === "rejected") return { kind: "give-up", why: "no-endpoint" };
    this.#terms.spend();
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
  budget: ({ hedgeShareMax = SHARE_USUAL, hedgeBurst = BURST_USUAL }: StageSettings) => ({
    share: hedgeShareMax,
    burst: hedgeBurst,
  }),
  open: (terms: StageTerms): HedgeBudget => new HedgeBudget(terms),
} as const satisfies StageKind<HedgeBudget>;

/** Without a token for so long at an endpoint that is well, a request goes to a second one too; Infinity for never. */
export function hedgeAfter({ hedgeMillis = Infinity }: StageSettings): Micros {
  return hedgeMillis * MICROS_PER_MILLI;
}
