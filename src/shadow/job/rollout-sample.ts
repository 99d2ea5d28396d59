import type { MeanEstimate } from "#core/rollout/judge/confidence-sequence.ts";
import type { BlockSums } from "#core/rollout/judge/block-differences.ts";
import type { TimeFigure, TimeMetric } from "#core/rollout/judge/outcome.ts";

/** Figures that a plan speaks of. */
export const PLANNED_FIGURES = ["mean", "p99"] as const satisfies readonly TimeFigure[];
export type PlannedFigure = (typeof PLANNED_FIGURES)[number];
export type PlannedFigureKey = `${TimeMetric}.${PlannedFigure}`;

/** What one rollout, or the truth as one would count it, found of a figure: the other arm's less the control's. */
export interface FigureSample {
  readonly plain: MeanEstimate;
  /** Less what the predictions explain. */
  readonly adjusted: MeanEstimate;
  /** Of a design that compares windows; undefined where clusters are compared. */
  readonly blocks: BlockSums | undefined;
}

/** Plain data, as it comes from a thread. */
export interface RolloutSample {
  readonly figures: Readonly<Record<PlannedFigureKey, FigureSample>>;
  /** Requests that were compared. */
  readonly requests: number;
  /** Requests that failed or were refused, by arm. */
  readonly failed: readonly number[];
  /** A guardrail ended it. */
  readonly takenBack: boolean;
}
