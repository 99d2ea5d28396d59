import type { Micros } from "#core/base/units.ts";

/** What llm-d's endpoint picker gives its latency predictor of the endpoint that it looks at. */
export interface Features {
  readonly kvUtilization: number;
  readonly inputTokens: number;
  readonly waiting: number;
  readonly running: number;
  /** Of prompts there that have no first token yet, and of requests there that have. */
  readonly prefillTokensInFlight: number;
  readonly decodeTokensInFlight: number;
  /** Share of the prompt that the endpoint is believed to hold. */
  readonly prefixScore: number;
}

export const FIGURES = ["ttft", "tpot"] as const;
export type FigureName = (typeof FIGURES)[number];

/** One decision: what was known, what was expected, and what it took; in the order of decisions. */
export interface Sample {
  readonly at: Micros;
  readonly endpoint: string;
  readonly features: Features;
  /** Microseconds. */
  readonly forecast: Readonly<Record<FigureName, number>>;
  /** Microseconds; undefined where it was not seen, or, of TPOT, where the answer was a single token. */
  readonly measured: Record<FigureName, number | undefined>;
  /** When both are known to a predictor; Infinity while they are not. */
  readonly knownAt: Record<FigureName, Micros>;
}
