import { type Candidate, runCandidate, type Setting } from "../candidate/candidate.ts";
import type { WorkloadRequests } from "../recorded/packed-workload.ts";
import { clustersOf } from "./clusters.ts";
import { type Losses, lossesOf, type Objective } from "./objective.ts";
import { WorkloadView } from "./workload-view.ts";

/** A candidate on conversations of a setting's workload, and on one of the drawn engines. Plain data. */
export interface Trial {
  readonly candidate: Candidate;
  readonly objective: Objective;
  /** Part of the conversations, those that begin first, in (0, 1]. */
  readonly share: number;
  /** 0 for the engine as it was fitted. */
  readonly replica: number;
}

export interface TrialResult {
  /** In the order of the workload, or of the part of it. */
  readonly losses: Losses;
  readonly completed: number;
}

/** Same setting and trial, same result, on any thread. */
export function runTrial(setting: Setting, { candidate, objective, share, replica }: Trial): TrialResult {
  const workload = share === 1 ? setting.workload : partOf(setting.workload, share);
  const outcome = runCandidate({ ...setting, workload }, candidate, { replica });
  return { losses: lossesOf(objective, workload, outcome), completed: outcome.completed };
}

/** A part is asked for by many trials. */
const parts = new WeakMap<WorkloadRequests, Map<number, WorkloadView>>();

/** Conversations that begin first; whole, and in the workload's order. */
function partOf(workload: WorkloadRequests, share: number): WorkloadView {
  const known = parts.get(workload) ?? new Map<number, WorkloadView>();
  parts.set(workload, known);
  let view = known.get(share);
  if (view === undefined) {
    const { ofRow, startMicros } = clustersOf(workload);
    const until = Math.max(1, Math.round(share * startMicros.length));
    const endMicros = startMicros[until] ?? Infinity;
    const rows: number[] = [];
    for (const { index, thinkMicros, arrivalMicros } of workload) {
      if (ofRow[index]! < until && (thinkMicros !== undefined || arrivalMicros < endMicros)) rows.push(index);
    }
    view = new WorkloadView(workload, Int32Array.from(rows));
    known.set(share, view);
  }
  return view;
}
