import type { Micros } from "../../base/units.ts";

/** Times that arms are compared by, from the request's arrival at the router; TPOT is a request's own mean. */
export const TIME_METRICS = ["ttft", "tpot", "e2e"] as const;
export type TimeMetric = (typeof TIME_METRICS)[number];

export const TIME_FIGURES = ["mean", "p50", "p90", "p99"] as const;
export type TimeFigure = (typeof TIME_FIGURES)[number];

export type Times = Readonly<Record<TimeMetric, Micros | undefined>>;

/** What became of one request that an arm routed. */
export interface RolloutOutcome {
  readonly arm: number;
  /** Window that it arrived in; -1 outside of windows. */
  readonly window: number;
  /** False where it is no part of the comparison: guardrails alone see it. */
  readonly counted: boolean;
  /** Requests of one arm and stretch are what guardrails look at together: its window, or what stands for one outside. */
  readonly stretch: number;
  /** The part of its stretch in which it came: requests of one are alike. */
  readonly slice: number;
  /** Session or tenant, whatever stays on one arm; "" where that is the request itself. */
  readonly cluster: string;
  /** Whose it is, where limits are judged by it; absent or "" where it is nobody's. */
  readonly tenant?: string;
  readonly sloClass?: string;
  /** refused: never placed. An answer that the client left is failed only if the endpoint broke it. */
  readonly status: "ok" | "failed" | "aborted" | "refused";
  /** Undefined where it did not come to it, or where an answer has fewer than two tokens. */
  readonly times: Times;
  /**
   * What the simulator predicts for this request if the control routes everything: known before the arms are drawn, so
   * that it can take away what differs from window to window without a bias of its own.
   */
  readonly predicted?: Times;
  /** Whether it got what it is promised; absent where that is nothing, or where nobody saw it. */
  readonly slo?: "met" | "missed";
  /** "" where it was refused. */
  readonly endpoint: string;
  readonly promptTokens: number;
  /** Prompt tokens that were found in a cache; undefined where the engine does not say. */
  readonly cachedTokens: number | undefined;
}

/** What became of a request, on a clock that shows `byMicros` more at the same time. */
export function movedOutcome(outcome: RolloutOutcome, byMicros: Micros): RolloutOutcome {
  return { ...outcome, stretch: outcome.stretch + byMicros };
}
