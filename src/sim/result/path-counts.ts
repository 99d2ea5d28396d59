import type { Fault } from "#core/endpoint/fault.ts";
import { newSimulatedCounts, type SimulatedCounts } from "#core/stages.ts";
import type { TroubleKind } from "#core/path/wait-verdict.ts";

/** Troubles of an engine itself; nobody drains one by hand in a simulation. */
export type EngineTrouble = Exclude<TroubleKind, "evicted">;

/** What became of attempts, counted as the gateway's metrics count it. */
export interface PathCounts extends SimulatedCounts {
  /** Attempts that failed before the client had a byte, by fault. */
  readonly faults: Partial<Record<Fault, number>>;
  retries: number;
  /** Retries that the budget did not allow. */
  retriesDenied: number;
  /** Requests without a byte that left an endpoint, by what it was; late: a busy one, for one that was idle. */
  readonly moved: Record<EngineTrouble | "late", number>;
  /** Answers that broke after the client had part of them, and did not go on. */
  cuts: number;
  /** Requests whose limit ran out. */
  timeouts: number;
}

/** Counts before the first request. */
export function newPathCounts(): PathCounts {
  return {
    faults: {},
    retries: 0,
    retriesDenied: 0,
    moved: { lost: 0, hung: 0, asleep: 0, draining: 0, late: 0 },
    ...newSimulatedCounts(),
    cuts: 0,
    timeouts: 0,
  };
}
