import { MICROS_PER_SECOND } from "#core/units.ts";
import { type SloTargets, targetOf } from "#sim/result/slo.ts";
import type { Workload } from "../recorded/packed-workload.ts";
import type { CandidateOutcome } from "./candidate.ts";

const SECONDS_PER_HOUR = 3_600;

/** Hours of all endpoints until the last request was over: those that an autoscaler ordered, or all that were there. */
export function replicaHoursOf({ scaling, endedMicros }: CandidateOutcome, endpoints: number): number {
  const seconds = scaling === undefined ? (endpoints * endedMicros) / MICROS_PER_SECOND : scaling.replicaSeconds;
  return seconds / SECONDS_PER_HOUR;
}

/**
 * Part of the requests whose class has targets that met all of them; one that was not answered whole met none. Undefined
 * where no class has any.
 */
export function goodputOf(workload: Workload, outcome: CandidateOutcome, targets: SloTargets): number | undefined {
  let all = 0;
  let good = 0;
  for (const { index, sloClass } of workload) {
    const target = targetOf(targets, sloClass);
    if (target === undefined) continue;
    all++;
    const tpot = outcome.tpotMicros[index]!;
    const meets =
      outcome.ttftMicros[index]! <= (target.ttftMicros ?? Infinity) &&
      outcome.e2eMicros[index]! <= (target.e2eMicros ?? Infinity) &&
      (Number.isNaN(tpot) || tpot <= (target.tpotMicros ?? Infinity));
    if (meets) good++;
  }
  return all === 0 ? undefined : good / all;
}
