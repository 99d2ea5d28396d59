import type { WorkloadRequest } from "#trace/workload-request.ts";

/** The first requests of a workload; all without a limit. */
export function prefixOf(workload: readonly WorkloadRequest[], limit: number | undefined): readonly WorkloadRequest[] {
  return limit === undefined ? workload : workload.slice(0, limit);
}

/**
 * Keeps the first turns of each conversation (requirements 003 §5, capped); requests without one are kept. All without a
 * bound.
 */
export function capped(workload: readonly WorkloadRequest[], turnsMax: number | undefined): readonly WorkloadRequest[] {
  return turnsMax === undefined ? workload : workload.filter(({ session, turn }) => session === "" || turn < turnsMax);
}
