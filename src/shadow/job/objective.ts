import type { ObjectiveName } from "#core/objective-names.ts";
import { percentile } from "#core/base/quantile.ts";
import { promisedTo, type SloTargets, timesMeet } from "#sim/result/slo.ts";
import type { CandidateOutcome } from "../candidate/candidate.ts";
import { timesOf } from "../candidate/cost.ts";
import { sessionLosses } from "../candidate/sessions.ts";
import type { Metric } from "../figure/metric.ts";
import type { WorkloadRequests } from "../recorded/packed-workload.ts";

/** What a search makes as good as it can. */
export type Objective =
  /** Part of the requests that get what they are promised; cost is engine time per such request. */
  | { readonly kind: "goodput" | "cost"; readonly targets: SloTargets }
  | { readonly kind: "time"; readonly metric: Metric; readonly figure: "mean" | "p99" }
  /** From a session's first request to its last answer. */
  | { readonly kind: "session"; readonly figure: "mean" | "p99" };

const METRIC_OF: Readonly<Record<string, Metric>> = { ttft: "ttftMicros", tpot: "tpotMicros", e2e: "e2eMicros" };

/** An objective by its name; `targets` are read by goodput and cost alone. */
export function objectiveNamed(name: ObjectiveName, targets: SloTargets): Objective {
  if (name === "goodput" || name === "cost") return { kind: name, targets };
  const [metric = "", of] = name.split("-");
  const figure = of === "p99" ? "p99" : "mean";
  return metric === "session" ? { kind: "session", figure } : { kind: "time", metric: METRIC_OF[metric]!, figure };
}

/** What each request loses: microseconds, or 1 where it missed its targets and 0 where it met them; NaN does not count. */
export type Losses = Float64Array;

/** In the workload's order. A request without an answer missed its targets, and has no time. */
export function lossesOf(objective: Objective, workload: WorkloadRequests, outcome: CandidateOutcome): Losses {
  if (objective.kind === "time") return outcome[objective.metric];
  if (objective.kind === "session") return sessionLosses(workload, outcome);
  const losses = new Float64Array(workload.length).fill(NaN);
  for (const request of workload) {
    const target = promisedTo(request, objective.targets);
    if (target === undefined) continue;
    losses[request.index] = timesMeet(timesOf(outcome, request.index), target) ? 0 : 1;
  }
  return losses;
}

/** One number of the losses, the less the better; Infinity where there is none. */
export function lossOf(objective: Objective, losses: Losses): number {
  const known = losses.filter((loss) => !Number.isNaN(loss));
  if (known.length === 0) return Infinity;
  if (isTail(objective)) return percentile(known.sort(), 99);
  return known.reduce((sum, loss) => sum + loss, 0) / known.length;
}

/** What a share of requests without an answer costs: a tenth makes times count 2.9 times, a half 1,024 times. */
const UNANSWERED_POWER = 10;
const ANSWERED_MIN = 1e-3;

/**
 * How much more losses count of a policy that answered this share of the requests. It must not win by answering less; of
 * shares, what was not answered is missed already.
 */
export function unansweredFactor(objective: Objective, answered: number): number {
  if (isShare(objective)) return 1;
  let factor = 1;
  for (let i = 0; i < UNANSWERED_POWER; i++) factor /= Math.max(ANSWERED_MIN, answered);
  return factor;
}

/** Whether the objective is a percentile and no mean. */
export function isTail(objective: Objective): boolean {
  return "figure" in objective && objective.figure === "p99";
}

/** Whether gains are parts of all requests, and not of the figure in force. */
export function isShare(objective: Objective): boolean {
  return objective.kind === "goodput" || objective.kind === "cost";
}

/** What is gained from one loss to another: part of the former of a time, difference of shares of goodput. */
export function gainBetween(objective: Objective, before: number, after: number): number {
  if (isShare(objective)) return before - after;
  return before > 0 ? (before - after) / before : 0;
}
