import { MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import type { CanaryReading } from "./judge/canary-reading.ts";
import type { GuardrailReading } from "./judge/guardrail.ts";
import type { Verdict } from "./judge/verdict.ts";
import { JUDGE, lengthened, type RolloutState, type RolloutStep } from "./rollout-state.ts";

/** The arm that has a canary's share. */
const CANARY = 1;

/**
 * The step that a verdict calls for, undefined for none: a crossed guardrail takes the rollout back at once, a result
 * that contradicts the prediction, or that is worthless, pauses it; what lasts into the other arm's windows makes them longer
 * first, and so do windows that have too few requests to compare. A canary goes on when its step has shown that it does no harm beyond the margin; it goes back when it is surely
 * worse by more than that, and holds while neither is known. Promotion is left to whoever started it.
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
  const [ailment] = verdict.ailments;
  if (ailment !== undefined) {
    const why = `${plan.arms[ailment.arm]!.name}: ${ailment.sentence}`;
    const isOfWindows = ailment.kind === "carry-over" || ailment.kind === "sparse";
    if (isOfWindows && lengthened(state) !== undefined) return step("lengthen", why);
    // Few requests are no harm, and may become more.
    if (ailment.kind !== "sparse") return step("pause", why);
  }
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
  const { canary } = verdict;
  if (canary === undefined || at < state.startedAt + plan.design.windowMicros) return undefined;
  if (canary.outcome === "advance") {
    return step("advance", `${canary.nextPercent} %: ${canaryText(canary)}`);
  }
  if (canary.outcome === "hold" || canary.worse === undefined) return undefined;
  const { figure, low, allowed } = canary.worse;
  const by = `by at least ${percent(low)}, ${percent(allowed)} allowed`;
  return step("rollback", `${plan.arms[CANARY]!.name}: ${figure} is surely higher ${by}`);
}

/** How much worse each figure may be at most, by what was measured. */
function canaryText({ figures }: CanaryReading): string {
  return figures
    .map(({ figure, high, allowed }) => {
      const most = Number.isFinite(high) ? `at most ${percent(high)} worse` : "not known yet";
      return `${figure} ${most} of ${percent(allowed)} allowed`;
    })
    .join(", ");
}

function percent(share: number): string {
  return `${(100 * Math.max(0, share)).toFixed(1)} %`;
}

function crossingText(arm: string, { guardrail, of, value, low, control, limit }: GuardrailReading): string {
  const { figure, relativeMax } = guardrail;
  const text = (one: number) => (figure.endsWith("-rate") ? `${(100 * one).toFixed(1)} %` : `${seconds(one)} s`);
  const isRelative = relativeMax !== undefined && !Number.isNaN(control);
  const times = isRelative ? `, ${relativeMax} times the control's ${text(control)}` : "";
  const whose = of === undefined ? "" : ` of ${of}`;
  return `${arm}: ${figure}${whose} is ${text(value)}, at least ${text(low)}: above ${text(limit)}${times}`;
}

function seconds(micros: number): string {
  return (micros / MICROS_PER_SECOND).toFixed(3);
}
