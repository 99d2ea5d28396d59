import type { RouteRequest } from "#core/request.ts";
import type { Design, RolloutPlan } from "#core/rollout/rollout-plan.ts";
import { plannedRollout, type RolloutState, type RolloutStep, steppedRollout } from "#core/rollout/rollout-state.ts";
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
  return { kind: "rollout-step", at, rollout: "try", step, arm, reason: "test" };
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
