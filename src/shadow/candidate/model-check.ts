import type { CandidateOutcome } from "./candidate.ts";
import { type PredictionError, predictionError } from "../figure/figures.ts";
import { type PerMetric, perMetric } from "../figure/metric.ts";
import { observedTimes } from "./measured.ts";
import type { Observed } from "../recorded/observed.ts";
import { uncomparedReason } from "../recorded/uncompared-reason.ts";

/** A simulation of the profile in force against what really happened. */
export interface ModelCheck {
  readonly error: PerMetric<PredictionError | undefined>;
  /** Requests that are not compared, by reason. */
  readonly uncompared: Readonly<Record<string, number>>;
}

const NOT_SIMULATED = "without an answer in the simulation";

/** Both in the workload's order. Only requests that one endpoint answered whole can be compared. */
export function modelCheck(base: CandidateOutcome, observed: readonly Observed[]): ModelCheck {
  const uncompared: Record<string, number> = {};
  const compared = observed.map((one, i) => {
    const reason = uncomparedReason(one) ?? (Number.isNaN(base.e2eMicros[i]!) ? NOT_SIMULATED : undefined);
    if (reason !== undefined) uncompared[reason] = (uncompared[reason] ?? 0) + 1;
    return reason === undefined;
  });
  const times = observedTimes(observed);
  const seen = perMetric((metric) => times[metric].map((value, i) => (compared[i]! ? value : NaN)));
  return { error: perMetric((metric) => predictionError(base[metric], seen[metric])), uncompared };
}
