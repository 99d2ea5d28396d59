import type { RouteRequest } from "#core/request/request.ts";
import type { Design, RolloutPlan } from "#core/rollout/plan/rollout-plan.ts";
import { plannedRollout, type RolloutState, type RolloutStep, steppedRollout } from "#core/rollout/rollout-state.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { JudgeRules } from "#core/rollout/judge/judge-rules.ts";
import type { RolloutPlanned } from "#core/rollout/rollout-input.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";

export const WINDOW_MICROS = 60_000_000;

export function planOf(design: Design, arms = 2, seed = 7): RolloutPlan {
  return {
    name: "try",
    model: "llama",
    seed,
    arms: Array.from({ length: arms }, (_, i) => ({ name: `arm-${i}`, profile: `profile-${i}`, pool: `pool-${i}` })),
    design,
    cooldownMicros: 600_000_000,
  };
}

/** Every design with a window of a minute. */
export const DESIGNS: readonly Design[] = [
  { kind: "switchback", windowMicros: WINDOW_MICROS, washoutMicros: 10_000_000 },
  { kind: "pools", windowMicros: WINDOW_MICROS, by: "session", label: "pool" },
  { kind: "split", windowMicros: WINDOW_MICROS, by: "session" },
  { kind: "split", windowMicros: WINDOW_MICROS, by: "tenant" },
  { kind: "split", windowMicros: WINDOW_MICROS, by: "request" },
  { kind: "canary", windowMicros: WINDOW_MICROS, by: "session", stepPercents: [1, 5, 25, 50, 100] },
  { kind: "shadow", windowMicros: WINDOW_MICROS },
];

export function stepOf(step: RolloutStep["step"], at: number, arm = ""): RolloutStep {
  return { kind: "rollout-step", at, rollout: "try", step, arm, reason: "test", by: "test" };
}

export const RULES: JudgeRules = {
  level: 0.05,
  plannedCount: 20,
  settleMicros: 1_000_000,
  windowSamplesMin: 1,
  guardrails: [{ figure: "error-rate", absoluteMax: 0.5, samplesMin: 3 }],
  predictions: [],
};

export function plannedOf(plan: RolloutPlan, at = 0, rules = RULES): RolloutPlanned {
  const spec: ProfileSpec = { filters: [], scorers: [], picker: { plugin: "random", parameters: {} } };
  const profiles = Object.fromEntries(plan.arms.map(({ profile }) => [profile, spec]));
  return { kind: "rollout-planned", at, plan, rules, profiles };
}

/** The state after steps, all of which must be accepted. */
export function after(plan: RolloutPlan, ...steps: readonly RolloutStep[]): RolloutState {
  let state = plannedRollout(plan, 0);
  for (const step of steps) {
    const next = steppedRollout(state, step);
    if (typeof next === "string") throw new Error(next);
    state = next;
  }
  return state;
}

export function requestOf(number: number, session = "", tenant = ""): RouteRequest {
  return {
    id: `request-${number}`,
    model: "llama",
    tenant,
    session,
    sloClass: "",
    priority: 0,
    promptTokens: 100,
    promptTokensExact: true,
    outputTokensMax: undefined,
    sequences: 1,
    blocks: EMPTY_CHAIN,
    profile: "",
  };
}
