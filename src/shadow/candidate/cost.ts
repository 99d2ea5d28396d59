import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { promisedTo, type RequestTimes, type SloTargets, timesMeet } from "#sim/result/slo.ts";
import type { WorkloadRequests } from "../recorded/packed-workload.ts";
import type { CandidateOutcome } from "./candidate.ts";

const SECONDS_PER_HOUR = 3_600;

/** Hours of all endpoints until the last request was over: those that an autoscaler ordered, or all that were there. */
export function replicaHoursOf({ scaling, endedMicros }: CandidateOutcome, endpoints: number): number {
  const seconds = scaling === undefined ? (endpoints * endedMicros) / MICROS_PER_SECOND : scaling.replicaSeconds;
  return seconds / SECONDS_PER_HOUR;
}

/**
 * Part of the requests that are promised something, by themselves or by their class, that got all of it; one that was not
 * answered whole got nothing. Undefined where nobody is promised anything.
 */
export function goodputOf(
  workload: WorkloadRequests,
  outcome: CandidateOutcome,
  targets: SloTargets | undefined,
): number | undefined {
  let all = 0;
  let good = 0;
  for (const request of workload) {
    const target = promisedTo(request, targets);
    if (target === undefined) continue;
    all++;
    if (timesMeet(timesOf(outcome, request.index), target)) good++;
  }
  return all === 0 ? undefined : good / all;
}

/** A request's times in microseconds; NaN for what it has not. */
export function timesOf(outcome: CandidateOutcome, row: number): RequestTimes {
  return { ttft: outcome.ttftMicros[row]!, tpot: outcome.tpotMicros[row]!, e2e: outcome.e2eMicros[row]! };
}
