import type { JudgeOptions } from "#core/rollout/judge/judge.ts";
import type { Design, RolloutPlan } from "#core/rollout/plan/rollout-plan.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { POOLS } from "./rollout-design.ts";

/** A planned rollout of one profile against another, and how it is judged. */
export function twoArmPlan(design: Design, seed: number): RolloutPlan {
  return {
    name: "plan",
    model: "",
    seed,
    arms: ["control", "other"].map((name, arm) => ({ name, profile: name, pool: POOLS[arm]! })),
    design,
    cooldownMicros: 0,
  };
}

/** Half an hour: in a simulation all answers come. */
const SETTLE_SECONDS = 1800;
const WINDOW_SAMPLES_MIN = 5;

/** How a simulated rollout is judged: with `level`, in (0, 1), as the chance of a false alarm, and without guardrails. */
export function judgeOptions(plan: RolloutPlan, level: number, plannedCount: number): JudgeOptions {
  return {
    plan,
    level,
    plannedCount,
    settleMicros: SETTLE_SECONDS * MICROS_PER_SECOND,
    windowSamplesMin: WINDOW_SAMPLES_MIN,
    guardrails: [],
    predictions: [],
  };
}
