import type { Outcomes } from "../outcomes.ts";

/** What a class of requests is promised; a target that is left out always holds. */
export interface SloTarget {
  readonly ttftMicros?: number;
  readonly tpotMicros?: number;
  readonly e2eMicros?: number;
}

/** Targets by class; "" is for requests without one, and "*" for classes that are not named. */
export type SloTargets = Readonly<Record<string, SloTarget>>;

export function targetOf(targets: SloTargets, sloClass: string): SloTarget | undefined {
  return Object.hasOwn(targets, sloClass) ? targets[sloClass] : targets["*"];
}

/** Whether a request got all that its class is promised; one that did not end well got nothing. */
export function meetsTarget(outcomes: Outcomes, row: number, target: SloTarget): boolean {
  if (!outcomes.isCompleted(row)) return false;
  const tpot = tpotOf(outcomes, row);
  return (
    outcomes.ttft[row]! <= (target.ttftMicros ?? Infinity) &&
    outcomes.e2e[row]! <= (target.e2eMicros ?? Infinity) &&
    (Number.isNaN(tpot) || tpot <= (target.tpotMicros ?? Infinity))
  );
}

/** Mean time per output token after the first; NaN for an answer of one token, and for none. */
export function tpotOf(outcomes: Outcomes, row: number): number {
  const tokens = outcomes.outputTokens[row]!;
  return tokens > 1 ? (outcomes.e2e[row]! - outcomes.ttft[row]!) / (tokens - 1) : NaN;
}
