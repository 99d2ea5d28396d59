import type { EngineConfig } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { FitReport } from "../calibrate/fit-report.ts";
import type { WhyCard } from "#page/status/why-card.ts";
import type { Candidate } from "../candidate/candidate.ts";
import type { WhatIfAnswer } from "../question/what-if.ts";
import type { Objective } from "../job/objective.ts";
import type { TuneAnswer } from "../tune/tune.ts";
import type { AwaitedRequests } from "../rollout/awaited-requests.ts";
import type { RolloutPredictions } from "../rollout/request-predictions.ts";

/** What the shadow's thread is started with. */
export interface ShadowWork {
  /** The engine model; where it is calibrated, the one to begin with. */
  readonly engine: EngineConfig;
  /** What that engine leaves to chance; evaluations have no intervals without it. */
  readonly residuals?: StepResiduals | undefined;
  /** undefined where the engine stays as it is. */
  readonly calibrate: CalibrateWork | undefined;
  readonly candidates: readonly Candidate[];
  readonly intervalMillis: number;
  /** Latest requests that an evaluation looks at, and the fewest that it needs. */
  readonly windowRequests: number;
  readonly requestsMin: number;
  /** Time between two looks for requests of a rollout that wait for a prediction. */
  readonly predictMillis: number;
  /** Share of one core that fits and evaluations may take, in (0, 1]. */
  readonly cpuShareMax: number;
  /** Interval of the gateway's own scrapes. */
  readonly scrapeMillis: number;
  /** The policy that the one in force is held against; undefined where nothing is explained. */
  readonly why?: Candidate | undefined;
  /** Undefined where no better policy is searched. */
  readonly tune?: TuneWork | undefined;
  /** Fits and predictions alone: nothing is replayed or evaluated. */
  readonly onlyPredicts?: boolean;
}

export interface TuneWork {
  readonly intervalMillis: number;
  readonly objective: Objective;
  /** Policies to begin with, and scorers that may be added. */
  readonly bases: readonly Candidate[];
  readonly scorers: readonly string[];
  readonly trialsMax: number;
  readonly budgetMillis: number;
  readonly gainMin: number;
}

export interface CalibrateWork {
  /** A fit comes before every so manieth evaluation. */
  readonly every: number;
  /** Latest requests of the window that it looks at. */
  readonly requestsMax: number;
}

/** Lines of a trace, or what waits for a prediction now. */
export type ToShadow = { readonly lines: Uint8Array } | { readonly awaited: readonly AwaitedRequests[] };

export type FromShadow =
  /** It has worked through so many bytes of lines. */
  | { readonly kind: "taken"; readonly bytes: number; readonly parity: Parity; readonly cpuMicros: number }
  /** Something could not be done; the replay goes on. */
  | { readonly kind: "failed"; readonly detail: string }
  | { readonly kind: "fitted"; readonly report: FitReport; readonly millis: number; readonly cpuMicros: number }
  | ({ readonly kind: "predicted" } & RolloutPredictions)
  | { readonly kind: "tuned"; readonly answer: TuneAnswer }
  | { readonly kind: "explained"; readonly why: WhyCard }
  | {
      readonly kind: "evaluated";
      readonly answer: WhatIfAnswer;
      /** Why it has no intervals; "" where it has. */
      readonly withoutIntervals: string;
      /** Changes of the fleet that the window had no room for. */
      readonly fleetEventsMerged: number;
      readonly millis: number;
      readonly cpuMicros: number;
    };

export interface Parity {
  readonly decisions: number;
  readonly differences: number;
  readonly unverifiable: number;
}
