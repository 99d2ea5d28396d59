import { type Distribution, distribution } from "#sim/result/distribution.ts";
import type { DecisionRegret } from "../job/regret.ts";

/** Decisions that are reported one by one. */
const WORST_REPORTED = 3;

/** How often and by how much another endpoint would have been better, by outcome. Times in microseconds. */
export interface RegretSummary {
  readonly decisions: number;
  /** Part of them in which some alternative would have answered the request itself sooner. */
  readonly better: number;
  /** Part of them in which some alternative would have been better for the request and those after it together. */
  readonly betterForAll: number;
  readonly regret: Distribution | undefined;
  readonly windowRegret: Distribution | undefined;
  /** Mean change of the request's E2E with the second choice: no hindsight in it, unlike in the best of several. */
  readonly secondChangeMicros: number;
  readonly secondWindowChangeMicros: number;
  /** Most lost by all together first. */
  readonly worst: readonly DecisionRegret[];
}

/** Over all decisions that could be asked about; undefined ones are left out. */
export function regretSummary(answers: readonly (DecisionRegret | undefined)[]): RegretSummary {
  const found = answers.filter((one) => one !== undefined);
  const part = (value: (one: DecisionRegret) => number) =>
    found.length === 0 ? 0 : found.filter((one) => value(one) > 0).length / found.length;
  const spread = (value: (one: DecisionRegret) => number) => distribution(Float64Array.from(found, value));
  const second = found.flatMap(({ choices: [own, next] }) =>
    own?.outcome === undefined || next?.outcome === undefined ? [] : [{ own: own.outcome, next: next.outcome }],
  );
  const mean = (value: (one: (typeof second)[number]) => number) =>
    second.length === 0 ? 0 : second.reduce((sum, one) => sum + value(one), 0) / second.length;
  return {
    secondChangeMicros: mean(({ own, next }) => next.e2eMicros - own.e2eMicros),
    secondWindowChangeMicros: mean(({ next }) => next.windowChangeMicros),
    decisions: found.length,
    better: part((one) => one.regretMicros),
    betterForAll: part((one) => one.windowRegretMicros),
    regret: spread((one) => one.regretMicros),
    windowRegret: spread((one) => one.windowRegretMicros),
    worst: found
      .filter((one) => one.regretMicros > 0 || one.windowRegretMicros > 0)
      .sort((a, b) => b.windowRegretMicros - a.windowRegretMicros || b.regretMicros - a.regretMicros)
      .slice(0, WORST_REPORTED),
  };
}
