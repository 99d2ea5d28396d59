import type { Slo } from "#core/request/slo.ts";
import type { Outcomes } from "./outcomes.ts";

/** What a class of requests is promised; a target that is left out always holds. */
export interface SloTarget {
  readonly ttftMicros?: number;
  readonly tpotMicros?: number;
  readonly e2eMicros?: number;
}

/** Targets by class; "" is for requests without one, and "*" for classes that are not named. */
export type SloTargets = Readonly<Record<string, SloTarget>>;

/** The target of a class: its own, else that of "*"; undefined for none. */
export function targetOf(targets: SloTargets, sloClass: string): SloTarget | undefined {
  return Object.hasOwn(targets, sloClass) ? targets[sloClass] : targets["*"];
}

/** What one request is promised: by itself, else by its class. */
export function promisedTo(
  { slo, sloClass }: { readonly slo?: Slo | undefined; readonly sloClass: string },
  targets: SloTargets | undefined,
): SloTarget | undefined {
  const ofClass = targets && targetOf(targets, sloClass);
  return slo === undefined ? ofClass : { ...ofClass, ...slo };
}

/** Times of one request in microseconds; NaN for what did not come to it, and for the TPOT of one token. */
export interface RequestTimes {
  readonly ttft: number;
  readonly tpot: number;
  readonly e2e: number;
}

/** Whether all targets hold; none holds of a request that was not answered. */
export function timesMeet({ ttft, tpot, e2e }: RequestTimes, target: SloTarget): boolean {
  return (
    ttft <= (target.ttftMicros ?? Infinity) &&
    e2e <= (target.e2eMicros ?? Infinity) &&
    (Number.isNaN(tpot) || tpot <= (target.tpotMicros ?? Infinity))
  );
}

/** Whether a request got all that its class is promised; one that did not end well got nothing. */
export function meetsTarget(outcomes: Outcomes, row: number, target: SloTarget): boolean {
  if (!outcomes.isCompleted(row)) return false;
  return timesMeet({ ttft: outcomes.ttft[row]!, tpot: outcomeTpot(outcomes, row), e2e: outcomes.e2e[row]! }, target);
}

/** Mean time per output token after the first; NaN for an answer of one token, and for none. */
export function outcomeTpot(outcomes: Outcomes, row: number): number {
  const tokens = outcomes.outputTokens[row]!;
  return tokens > 1 ? (outcomes.e2e[row]! - outcomes.ttft[row]!) / (tokens - 1) : NaN;
}
