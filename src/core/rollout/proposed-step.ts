import type { Micros } from "../units.ts";
import type { Verdict } from "./judge/verdict.ts";
import type { RolloutState, RolloutStep } from "./rollout-state.ts";

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
  });
  const [crossed] = verdict.crossings;
  if (crossed !== undefined) {
    const { figure, absoluteMax, relativeMax } = crossed.guardrail;
    const relative = Number.isNaN(crossed.control) ? "" : `${relativeMax} times the control's ${crossed.control}`;
    const limit = relative === "" ? `the limit ${absoluteMax}` : relative;
    return step("rollback", `${plan.arms[crossed.arm]!.name}: ${figure} is ${crossed.value}, above ${limit}`);
  }
  const [contradiction] = verdict.contradictions;
  if (contradiction !== undefined) {
    const { prediction, difference } = contradiction;
    const measured = `measured ${difference.low} to ${difference.high} microseconds`;
    const expected = `predicted ${prediction.low} to ${prediction.high}`;
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
