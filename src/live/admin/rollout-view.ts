import type { GuardedFigure } from "#core/rollout/judge/guardrail.ts";
import type { Membership } from "#core/rollout/judge/member-tallies.ts";
import type { TimeFigure, TimeMetric } from "#core/rollout/judge/outcome.ts";
import type { SplitKey } from "#core/rollout/plan/rollout-plan.ts";
import type { Phase, StepKind } from "#core/rollout/rollout-state.ts";

/** Rollouts as pages, the command line and the admin API show them. Plain data; null is what is not known. */
export interface RolloutsView {
  /** ISO 8601, as all times here. */
  readonly at: string;
  /** Those under way first, then the newest first; bounded. */
  readonly rollouts: readonly RolloutView[];
}

export interface RolloutView {
  readonly name: string;
  /** "" for all models. */
  readonly model: string;
  readonly phase: Phase;
  /** Since when it is in this phase, why, and who asked for it: a name, or "judge". */
  readonly since: string;
  readonly reason: string;
  readonly by: string;
  /** What it has found so far and what follows, in a sentence; the same wherever a rollout is shown. */
  readonly verdict: VerdictView;
  /** What makes the comparison worthless, a line each with the arm's name; empty where nothing does. */
  readonly health: readonly string[];
  /** Whose requests are judged, and by whom; "" where there is one gateway. */
  readonly scope: string;
  readonly design: DesignView;
  /** The control first. */
  readonly arms: readonly ArmView[];
  /** Null while it does not run. */
  readonly window: WindowView | null;
  /** Null unless it is a canary. */
  readonly canary: { readonly step: number; readonly stepPercents: readonly number[] } | null;
  /** After a rollback: until when no rollout of the model starts. */
  readonly cooldownEndsAt: string | null;
  /** Probability that an interval, at any look, leaves out a true difference. */
  readonly level: number;
  /** Every arm but the control, by metric and figure. */
  readonly differences: readonly DifferenceView[];
  readonly guardrails: readonly GuardrailView[];
  readonly predictions: readonly PredictionView[];
  /** Oldest first; bounded. */
  readonly steps: readonly StepView[];
  /** Differences over time, oldest first; bounded. */
  readonly intervals: readonly IntervalsView[];
  /** What each arm did in the windows that were compared last, oldest first; bounded. */
  readonly windows: readonly ComparedWindowView[];
  /** Requests that are counted and have not ended; those that ended too late for their window. */
  readonly inFlight: number;
  readonly lateOutcomes: number;
  /** Requests of a split that were compared before earlier ones had ended, for want of room. */
  readonly outOfOrder: number;
  /** Requests that ended and were predicted, were compared without, or wait; null where nothing is predicted. */
  readonly adjustment: { readonly predicted: number; readonly unpredicted: number; readonly waiting: number } | null;
}

export interface VerdictView {
  readonly text: string;
  readonly advice: "roll back" | "promote" | "wait" | "none";
  /** What counts as one that were compared, and those that the plan counts with. */
  readonly done: number;
  readonly planned: number;
  /** blocks, windows, sessions, tenants or requests. */
  readonly unit: string;
}

export interface DesignView {
  readonly kind: "switchback" | "pools" | "split" | "canary" | "shadow";
  readonly windowMillis: number;
  /** Of a switchback. */
  readonly washoutMillis: number | null;
  /** What stays on one arm; null where the whole fleet does. */
  readonly by: SplitKey | null;
  /** Of pools: the label that names them. */
  readonly label: string | null;
}

export interface WindowView {
  readonly number: number;
  readonly startedAt: string;
  readonly endsAt: string;
  /** The arm that the whole fleet is on; null where arms run side by side. */
  readonly arm: string | null;
  /** What arrives now is not counted. */
  readonly isWashout: boolean;
}

export interface ArmView {
  readonly name: string;
  /** "" for what the policy has. */
  readonly profile: string;
  readonly pool: string | null;
  readonly isControl: boolean;
  /** Of the requests that arrive now, in percent. */
  readonly sharePercent: number;
  /** Since the start. */
  readonly total: FiguresView;
  /** Of the design shadow: how often it would have chosen the same endpoint. Null for arms that route. */
  readonly agreement: {
    readonly decisions: number;
    readonly agreed: number;
    /** Prompt tokens found cached per decision, less the control's. */
    readonly addedHitTokensMean: number | null;
  } | null;
}

export interface FiguresView {
  readonly requests: number;
  readonly failed: number;
  readonly refused: number;
  /** Shares in [0, 1]. */
  readonly errorRate: number | null;
  readonly refusedRate: number | null;
  readonly hitRatio: number | null;
  /** Of the requests that are promised times, those that got them. */
  readonly goodput: number | null;
  /** Requests of the busiest endpoint over the mean: 1 is even. */
  readonly imbalance: number | null;
  readonly times: Readonly<Record<TimeMetric, TimeView>>;
}

export interface TimeView {
  readonly samples: number;
  readonly meanMillis: number | null;
  readonly p50Millis: number | null;
  readonly p90Millis: number | null;
  readonly p99Millis: number | null;
}

/** An arm's figure less the control's, with an interval that holds at every look together. */
export interface DifferenceView {
  readonly arm: string;
  readonly metric: TimeMetric;
  readonly figure: TimeFigure;
  /** What was counted as one: blocks of windows, or sessions, tenants, requests. */
  readonly count: number;
  readonly meanMillis: number | null;
  readonly lowMillis: number | null;
  readonly highMillis: number | null;
  /** The interval leaves out 0. */
  readonly isSignificant: boolean;
  /** Variance after what the predictions explain, over the variance without; 1 where there are none. */
  readonly varianceLeft: number | null;
}

export interface GuardrailView {
  readonly arm: string;
  readonly figure: GuardedFigure;
  /** Of value, control and limits: milliseconds for times, a share in [0, 1] for rates. */
  readonly unit: "millis" | "share";
  readonly value: number | null;
  /** What it is at least, at every look together: crossed where this is above the limit. Null where too little is known. */
  readonly low: number | null;
  readonly control: number | null;
  /** The lowest that holds now; null while none does. */
  readonly limit: number | null;
  readonly absoluteMax: number | null;
  readonly relativeMax: number | null;
  /** Whom a limit is judged for one by one; null for all together. */
  readonly each: Membership | null;
  readonly samples: number;
  readonly samplesMin: number;
  readonly crossed: boolean;
}

export interface PredictionView {
  readonly arm: string;
  readonly metric: TimeMetric;
  readonly figure: TimeFigure;
  readonly lowMillis: number;
  readonly highMillis: number;
  /** open: the measured interval is wider than a verdict allows. */
  readonly verdict: "open" | "agrees" | "contradicted";
}

export interface StepView {
  readonly at: string;
  readonly step: StepKind;
  /** The arm that was promoted; "" for other steps. */
  readonly arm: string;
  readonly reason: string;
  readonly by: string;
}

export interface ComparedWindowView {
  readonly window: number;
  readonly endedAt: string;
  /** The control first; in a switchback those that had the window alone have requests. */
  readonly arms: readonly { readonly requests: number; readonly times: Readonly<Record<TimeMetric, WindowTimes>> }[];
}

export type WindowTimes = Pick<TimeView, "meanMillis" | "p50Millis" | "p90Millis">;

export interface IntervalsView {
  readonly at: string;
  readonly window: number;
  /** The mean and p99 of each metric. */
  readonly differences: readonly Pick<
    DifferenceView,
    "arm" | "metric" | "figure" | "meanMillis" | "lowMillis" | "highMillis"
  >[];
}
