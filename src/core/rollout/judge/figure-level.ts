import type { RolloutPlan } from "../plan/rollout-plan.ts";
import { FIGURE_KEYS, type FigureKey, PRIMARY_DEFAULT } from "./figure-key.ts";
import type { JudgeRules } from "./judge-rules.ts";

/** Of the level: what all limits have together, and of the rest what the primary figure has. */
export const GUARDRAILS_SHARE = 0.2;
const PRIMARY_SHARE = 0.5;

/**
 * The part of a rollout's level that one interval has, by a weighted Bonferroni procedure: guardrails have a fifth of it
 * together, of the rest the primary figure has a half, and all others share the other half evenly; arms and a canary's
 * steps share each part. So the level is the chance that anything that is shown of a rollout is a false alarm, at any look.
 */
export function figureLevel(
  { level, primary = PRIMARY_DEFAULT }: Pick<JudgeRules, "level" | "primary">,
  { design, arms }: Pick<RolloutPlan, "design" | "arms">,
  key: FigureKey,
): number {
  const stages = design.kind === "canary" ? design.stepPercents.length : 1;
  const share = key === primary ? PRIMARY_SHARE : (1 - PRIMARY_SHARE) / (FIGURE_KEYS.length - 1);
  return (level * (1 - GUARDRAILS_SHARE) * share) / (stages * (arms.length - 1));
}
