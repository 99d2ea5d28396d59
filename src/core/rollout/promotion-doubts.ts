import { MICROS_PER_MILLI, type Micros } from "../base/units.ts";
import type { GuardrailReading } from "./judge/guardrail.ts";
import type { Judge } from "./judge/judge.ts";
import { TIME_METRICS } from "./judge/outcome.ts";
import type { JudgeRules } from "./judge/judge-rules.ts";
import type { Agreement } from "./agreement.ts";
import type { RolloutState } from "./rollout-state.ts";

/** What is known of a rollout's arms. */
export interface KnownArms {
  readonly state: RolloutState;
  readonly judge: Judge;
  readonly agreements: readonly Agreement[];
  readonly readings: readonly GuardrailReading[];
}

const CONTROL = 0;

/** Why an arm had better not be promoted, a line each; none where nothing is known against it. */
export function promotionDoubts(
  { state, judge, agreements, readings }: KnownArms,
  rules: JudgeRules,
  name: string,
): string[] {
  const arm = state.plan.arms.findIndex((one) => one.name === name);
  if (arm <= CONTROL) return [];
  const { requests } = judge.totals[arm]!.counts;
  const decided = agreements[arm]!.decisions;
  const doubts = requests === 0 && decided === 0 ? [`${name} had no request`] : [];
  for (const metric of TIME_METRICS) {
    const { low, high } = judge.difference(arm, metric, "mean");
    if (low > 0) doubts.push(`${name} is measured to be worse: ${metric}.mean ${rangeText(low, high)}`);
  }
  for (const { arm: of, metric, figure, low, high } of rules.predictions) {
    if (of === arm && low > 0)
      doubts.push(`${name} is predicted to be worse: ${metric}.${figure} ${rangeText(low, high)}`);
  }
  for (const { arm: of, crossed, guardrail } of readings) {
    if (of === arm && crossed) doubts.push(`${name} is beyond a guardrail: ${guardrail.figure}`);
  }
  return doubts;
}

function rangeText(low: Micros, high: Micros): string {
  const [from, to] = [low, high].map((one) => Number((one / MICROS_PER_MILLI).toPrecision(3)));
  return `+${from} to +${to} ms`;
}
