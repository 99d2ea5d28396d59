import { ConfigError } from "#config/config-error.ts";
import { checkShape, problemLine } from "#config/problem.ts";
import { resolveProfiles } from "#config/resolve-profiles.ts";
import { type RolloutDocument, ROLLOUT_SCHEMA, WINDOW_MILLIS_DEFAULT } from "#config/rollout-section.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { nameHash } from "#core/base/random.ts";
import type { JudgeRules } from "#core/rollout/judge/judge-rules.ts";
import type { FigureKey } from "#core/rollout/judge/figure-key.ts";
import type { Prediction } from "#core/rollout/judge/verdict.ts";
import type { RolloutSpec } from "#core/rollout/rollout-input.ts";
import type { Design, RolloutPlan } from "#core/rollout/plan/rollout-plan.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { Policy } from "../policy/policy.ts";
import { defaultGuardrails, guardrailOf } from "./guardrails.ts";
import { wholeRollout } from "#config/whole-rollout.ts";

export interface AskedRollout extends RolloutSpec {
  /** Between the asking and the first window. */
  readonly baselineMicros: Micros;
}

/** Part of a switchback's window that is left out where the document does not say. */
const WASHOUT_SHARE = 0.2;

/**
 * The rollout that a document asks for, its profiles as the policy in force has them; `predicts` where requests
 * are predicted. Throws ConfigError with all that is wrong.
 */
export function askedRollout(document: unknown, policy: Policy, predicts: boolean): AskedRollout {
  const checked = checkShape(ROLLOUT_SCHEMA, wholeRollout(document));
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => problemLine(problem)));
  const { value } = checked;
  const { names, profiles } = armProfiles(value, policy);
  const plan: RolloutPlan = {
    name: value.name,
    model: value.model,
    seed: value.seed ?? nameHash(value.name),
    arms: value.arms.map(({ name, pool }, i) => ({ name, profile: names[i]!, ...(pool !== undefined && { pool }) })),
    design: designOf(value.design, new Set(names).size === 1),
    cooldownMicros: micros(value.cooldownMillis),
  };
  return { plan, rules: rulesOf(value, predicts), profiles, baselineMicros: micros(value.baselineMillis) };
}

/**
 * Names of the arms' profiles, and those profiles. An arm that names none has what the policy has for the model at this
 * moment; where a rollout is about all models, and these have profiles of their own, each keeps its own ("").
 */
function armProfiles({ arms, model }: RolloutDocument, policy: Policy) {
  const { routing, profiles: inline } = policy.config;
  const lines: string[] = [];
  const profiles: Record<string, ProfileSpec> = {};
  const names = arms.map(({ profile: asked }, i) => {
    const ofModel = model === "" ? undefined : routing.models[model];
    if (asked === undefined && model === "" && Object.keys(routing.models).length > 0) return "";
    if (asked === undefined && ofModel === undefined) {
      profiles[policy.profile.name] = policy.profile.spec;
      return policy.profile.name;
    }
    const key = asked ?? ofModel!;
    const known = policy.profiles[key];
    try {
      const { name, spec } = known ?? resolved(key, { routing, profiles: inline });
      profiles[name] = spec;
      return name;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      lines.push(...error.lines.map((line) => line.replace(/^routing\.profile: /, `arms[${i}].profile: `)));
      return "";
    }
  });
  if (lines.length > 0) throw new ConfigError(lines);
  return { names, profiles };
}

function resolved(key: string, { routing, profiles }: Pick<Policy["config"], "routing" | "profiles">) {
  const alone = { ...routing, profile: key, models: {}, profilesAllowed: [] };
  return resolveProfiles({ routing: alone, profiles }, { environment: {}, readsFiles: false }).profile;
}

function designOf(
  { kind, windowMillis, washoutMillis, by, label, stepPercents }: RolloutDocument["design"],
  isOnePolicy: boolean,
): Design {
  const windowMicros = micros(windowMillis ?? WINDOW_MILLIS_DEFAULT[kind]);
  switch (kind) {
    case "switchback": {
      const washoutMicros = micros(washoutMillis ?? Math.floor((WASHOUT_SHARE * windowMicros) / MICROS_PER_MILLI));
      return { kind, windowMicros, washoutMicros };
    }
    case "pools":
      // Engines are compared, not policies.
      return { kind, windowMicros, by, label, ...(isOnePolicy && { redrawn: true }) };
    case "split":
      return { kind, windowMicros, by };
    case "canary":
      return { kind, windowMicros, by, stepPercents };
    case "shadow":
      return { kind, windowMicros };
  }
}

function rulesOf(document: RolloutDocument, predicts: boolean): JudgeRules {
  const { adjusted = predicts } = document;
  if (adjusted && !predicts) {
    throw new ConfigError([
      "adjusted: expected false or none, got true: neither rollout.predict nor shadow.enabled is true, so nothing is predicted",
    ]);
  }
  const { level, primary, plannedCount, settleMillis, windowSamplesMin, margin, stepSamplesMin, arms } = document;
  const guardrails = document.guardrails?.map(guardrailOf) ?? defaultGuardrails();
  const treatments = arms.slice(1).map(({ name }) => name);
  const predictions = document.predictions.map(({ arm, metric, figure, lowMillis, highMillis }, i): Prediction => {
    const place = treatments.indexOf(arm) + 1;
    if (place === 0) {
      const got = JSON.stringify(arm);
      throw new ConfigError([`predictions[${i}].arm: expected one of ${treatments.join(", ")}, got ${got}`]);
    }
    return { arm: place, metric, figure, low: lowMillis * MICROS_PER_MILLI, high: highMillis * MICROS_PER_MILLI };
  });
  const rules = {
    level,
    primary: primary as FigureKey,
    plannedCount,
    settleMicros: micros(settleMillis),
    windowSamplesMin,
    margin,
    stepSamplesMin,
    guardrails,
    predictions,
  };
  return adjusted ? { ...rules, awaitsPredictions: true } : rules;
}

function micros(millis: number): Micros {
  return Math.round(millis * MICROS_PER_MILLI);
}
