import type { Micros } from "#core/base/units.ts";
import { sessionTimes } from "#sim/result/session-times.ts";
import type { WorkloadRequests } from "../recorded/packed-workload.ts";
import type { CandidateOutcome } from "./candidate.ts";

type Times = Pick<CandidateOutcome, "arrivalMicros" | "e2eMicros">;

/** Session completion times under a candidate, at the place of each session's first request in the workload; else NaN. */
export function sessionLosses(workload: WorkloadRequests, { arrivalMicros, e2eMicros }: Times): Float64Array {
  const places = new Map<string, number>();
  const first: number[] = [];
  const session = new Int32Array(workload.length).fill(-1);
  for (const { index, session: name } of workload) {
    if (name === "") continue;
    let place = places.get(name);
    if (place === undefined) {
      places.set(name, (place = places.size));
      first.push(index);
    }
    session[index] = place;
  }
  const { length } = workload;
  const times = sessionTimes({ length, session, sessions: places.size, arrivalAt: arrivalMicros, e2e: e2eMicros });
  const losses = new Float64Array(length).fill(NaN);
  first.forEach((index, place) => (losses[index] = times[place] as Micros));
  return losses;
}
