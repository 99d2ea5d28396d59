import type { Micros } from "../base/units.ts";
import type { Design, RolloutPlan } from "./plan/rollout-plan.ts";

export type Phase = "planned" | "running" | "paused" | "promoted" | "rolled-back";

/** A rollout as it stands: plain data, so that a gateway that starts again goes on where it was. */
export interface RolloutState {
  readonly plan: RolloutPlan;
  readonly phase: Phase;
  /** Time of the last step. */
  readonly at: Micros;
  /** Windows are counted from here; the first has the number `firstWindow`. Both hold while it runs. */
  readonly startedAt: Micros;
  readonly firstWindow: number;
  /** Place in a canary's steps; 0 for other designs. */
  readonly canaryStep: number;
  /** How often a switchback's windows were made longer; absent for never. */
  readonly lengthened?: number;
  /** Name of the arm that was promoted, "" before. */
  readonly promoted: string;
  /** Why the last step was made. */
  readonly reason: string;
}

/** advance: a canary's next step. lengthen: of a switchback, windows three times as long that leave as much out as one had. */
export type StepKind = "start" | "pause" | "resume" | "advance" | "lengthen" | "promote" | "rollback";

/** A step of a rollout: an input, so that a trace with a rollout in it replays to the same decisions. */
export interface RolloutStep {
  readonly kind: "rollout-step";
  readonly at: Micros;
  /** The rollout's name. */
  readonly rollout: string;
  readonly step: StepKind;
  /** The arm to promote; "" for other steps. */
  readonly arm: string;
  readonly reason: string;
  /** Who asked for it; JUDGE where the comparison itself did. */
  readonly by: string;
}

/** Asks for steps in the name of what was measured. */
export const JUDGE = "judge";

/** What a step is accepted in. */
const ACCEPTED: Readonly<Record<StepKind, readonly Phase[]>> = {
  start: ["planned"],
  pause: ["running"],
  resume: ["paused"],
  advance: ["running"],
  lengthen: ["running"],
  promote: ["running", "paused"],
  rollback: ["running", "paused"],
};

/** A rollout before its first step. */
export function plannedRollout(plan: RolloutPlan, at: Micros): RolloutState {
  return {
    plan,
    phase: "planned",
    at,
    startedAt: at,
    firstWindow: 0,
    canaryStep: 0,
    promoted: "",
    reason: "planned",
  };
}

/** The state after a step; a text that states why it is refused where it is. */
export function steppedRollout(state: RolloutState, step: RolloutStep): RolloutState | string {
  const { plan, phase } = state;
  const accepted = ACCEPTED[step.step];
  if (!accepted.includes(phase)) {
    const hint = step.step === "rollback" && phase === "planned" ? "; `rollout remove` takes away a planned one" : "";
    return `rollout ${plan.name}: ${step.step} expects it ${accepted.join(" or ")}, and it is ${phase}${hint}`;
  }
  if (step.at < state.at) return `rollout ${plan.name}: ${step.step} is older than the last step`;
  const next = { ...state, at: step.at, reason: step.reason };
  switch (step.step) {
    case "start":
    case "resume":
      return { ...next, phase: "running", startedAt: step.at };
    case "pause":
      return { ...next, phase: "paused", firstWindow: windowAfter(state, step.at) };
    case "rollback":
      return { ...next, phase: "rolled-back", firstWindow: windowAfter(state, step.at) };
    case "promote": {
      const names = plan.arms.map(({ name }) => name);
      if (!names.includes(step.arm)) {
        return `rollout ${plan.name}: expected an arm of ${names.join(", ")}, got ${JSON.stringify(step.arm)}`;
      }
      return { ...next, phase: "promoted", promoted: step.arm, firstWindow: windowAfter(state, step.at) };
    }
    case "advance": {
      const { design } = plan;
      if (design.kind !== "canary") return `rollout ${plan.name}: only a canary advances, and it is a ${design.kind}`;
      const canaryStep = state.canaryStep + 1;
      if (canaryStep >= design.stepPercents.length) return `rollout ${plan.name}: it is at its last step`;
      return { ...next, canaryStep, startedAt: step.at, firstWindow: windowAfter(state, step.at) };
    }
    case "lengthen": {
      const design = lengthened(state);
      if (design === undefined)
        return `rollout ${plan.name}: expected a switchback that was lengthened at most once, got ${plan.design.kind}`;
      const times = (state.lengthened ?? 0) + 1;
      const longer = { ...next, plan: { ...plan, design }, lengthened: times };
      return { ...longer, startedAt: step.at, firstWindow: windowAfter(state, step.at) };
    }
  }
}

/** Windows nine times as long as were asked for are another rollout. */
const LENGTHENED_MAX = 2;

/** What leaves out an arm's effect that lasts into the windows of the other: undefined where that was done often enough. */
export function lengthened({ plan: { design }, lengthened: times = 0 }: RolloutState): Switchback | undefined {
  if (design.kind !== "switchback" || times >= LENGTHENED_MAX) return undefined;
  return { ...design, windowMicros: 3 * design.windowMicros, washoutMicros: design.windowMicros };
}

type Switchback = Extract<Design, { readonly kind: "switchback" }>;

/** Share of the traffic that a canary's arm has in its present step, in percent; undefined for other designs. */
export function canaryPercent({ plan: { design }, canaryStep }: RolloutState): number | undefined {
  return design.kind === "canary" ? design.stepPercents[canaryStep] : undefined;
}

/** Number of the window at a time while it runs. */
export function windowAt({ plan, startedAt, firstWindow }: RolloutState, at: Micros): number {
  return firstWindow + Math.max(0, Math.floor((at - startedAt) / plan.design.windowMicros));
}

/** First window that has nothing of what was before; a switchback goes on with a whole block of windows. */
function windowAfter(state: RolloutState, at: Micros): number {
  if (state.phase !== "running") return state.firstWindow;
  const next = windowAt(state, at) + 1;
  if (state.plan.design.kind !== "switchback") return next;
  const arms = state.plan.arms.length;
  return Math.ceil(next / arms) * arms;
}
