import type { Fault } from "../endpoint/fault.ts";
import type { Micros } from "../base/units.ts";

/** Which of two endpoints answers a request that both have: the one that had it first, or the other one. */
export type HedgeWinner = "first" | "second";

/** Asks for a second endpoint for a request of whose answer nothing came; the first one goes on with it. */
export interface RequestHedged {
  readonly kind: "request-hedged";
  readonly at: Micros;
  readonly requestId: string;
}

/** One of both endpoints has the request from now on; what the other one was charged is released. */
export interface HedgeSettled {
  readonly kind: "hedge-settled";
  readonly at: Micros;
  readonly requestId: string;
  readonly winner: HedgeWinner;
  /** What the other one failed by; absent where it was only slower, or the request is over. */
  readonly fault?: Fault;
}
