import type { EngineConfig } from "#engine/config.ts";
import type { Candidate } from "./candidate.ts";
import type { WhatIfAnswer } from "./what-if.ts";

/** What the shadow's thread is started with. */
export interface ShadowWork {
  readonly engine: EngineConfig;
  readonly candidates: readonly Candidate[];
  readonly intervalMillis: number;
  /** Latest requests that an evaluation looks at, and the fewest that it needs. */
  readonly windowRequests: number;
  readonly requestsMin: number;
  /** Interval of the gateway's own scrapes. */
  readonly scrapeMillis: number;
}

/** Lines of a trace. */
export interface ToShadow {
  readonly text: string;
}

export type FromShadow =
  /** It has worked through lines of this length. */
  | { readonly kind: "taken"; readonly chars: number; readonly parity: Parity }
  /** An evaluation could not be made; the replay goes on. */
  | { readonly kind: "failed"; readonly detail: string }
  | { readonly kind: "evaluated"; readonly answer: WhatIfAnswer; readonly millis: number };

export interface Parity {
  readonly decisions: number;
  readonly differences: number;
  readonly unverifiable: number;
}
