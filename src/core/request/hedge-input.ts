import type { Fault } from "../endpoint/fault.ts";
import type { Micros } from "../base/units.ts";
import type { StandbyWinner, StepsOf } from "./stage-step.ts";

export type HedgeInput = RequestHedged | HedgeSettled;

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
  readonly winner: StandbyWinner;
  /** What the other one failed by; absent where it was only slower, or the request is over. */
  readonly fault?: Fault;
}

export const HEDGE_STEPS: StepsOf<HedgeInput> = {
  "request-hedged": () => ({ kind: "stood-by" }),
  "hedge-settled": ({ winner, fault }) => ({ kind: "settled", winner, fault }),
};
