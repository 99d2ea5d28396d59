import { MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import type { GuardrailReading } from "./judge/guardrail.ts";
import type { Verdict } from "./judge/verdict.ts";
import { JUDGE, type RolloutState, type RolloutStep } from "./rollout-state.ts";

/**
 * The step that a verdict calls for, undefined for none: a crossed guardrail takes the rollout back at once, a result
 * that contradicts the prediction pauses it, and a canary goes on when its step has dwelt without either. Promotion is
 * left to whoever started it.
 */
export function proposedStep(state: RolloutState, at: Micros, verdict: Verdict): RolloutStep | undefined {
  const { plan, phase } = state;
  if (phase !== "running") return undefined;
  const step = (kind: RolloutStep["step"], reason: string): RolloutStep => ({
    kind: "rollout-step",
    at,
    rollout: plan.name,
    step: kind,
    arm: "",
    reason,
    by: JUDGE,
  });
  const [crossed] = verdict.crossings;
  if (crossed !== undefined) return step("rollback", crossingText(plan.arms[crossed.arm]!.name, crossed));
  const [contradiction] = verdict.contradictions;
  if (contradiction !== undefined) {
    const { prediction, difference } = contradiction;
    const measured = `measured ${seconds(difference.low)} to ${seconds(difference.high)} s against the control`;
    const expected = `predicted ${seconds(prediction.low)} to ${seconds(prediction.high)} s`;
    const { name } = plan.arms[difference.arm]!;
    return step(
      "pause",
      `${name}: ${difference.metric}.${difference.figure} contradicts the prediction: ${measured}, ${expected}`,
    );
  }
  const { design } = plan;
  if (design.kind !== "canary" || at < state.startedAt + design.windowMicros) return undefined;
  const share = design.stepPercents[state.canaryStep + 1];
  return share === undefined ? undefined : step("advance", `${share} % after a step without objection`);
}

function crossingText(arm: string, { guardrail, value, low, control, limit }: GuardrailReading): string {
  const { figure, relativeMax } = guardrail;
  const text = (one: number) => (figure.endsWith("-rate") ? `${(100 * one).toFixed(1)} %` : `${seconds(one)} s`);
  const isRelative = relativeMax !== undefined && limit === relativeMax * control;
  const of = isRelative ? `, ${relativeMax} times the control's ${text(control)}` : "";
  return `${arm}: ${figure} is ${text(value)}, at least ${text(low)}: above ${text(limit)}${of}`;
}

function seconds(micros: number): string {
  return (micros / MICROS_PER_SECOND).toFixed(3);
}
