import type { Micros } from "../../base/units.ts";
import type { RolloutPlan } from "../plan/rollout-plan.ts";
import { GUARDED_FIGURES, type Guardrail } from "./guardrail.ts";
import type { Membership } from "./member-tallies.ts";
import { TIME_FIGURES, TIME_METRICS } from "./outcome.ts";
import { MARGIN_DEFAULT, STEP_SAMPLES_DEFAULT } from "./canary-reading.ts";
import { FIGURE_KEYS, type FigureKey, PRIMARY_DEFAULT } from "./figure-key.ts";
import type { Prediction } from "./verdict.ts";

/** How arms are compared, and what ends or pauses a rollout: plain data. */
export interface JudgeRules {
  /** Probability that any interval, at any look, leaves out a true difference, or a limit takes back without cause; in (0, 1). */
  readonly level: number;
  /** What the rollout is to find: it has the larger part of the level. PRIMARY_DEFAULT where it is left out. */
  readonly primary?: FigureKey;
  /** Blocks or clusters at which the intervals are to be narrowest: those that the plan counts with. */
  readonly plannedCount: number;
  /**
   * A window is compared when all its requests have ended; those that have not so long after its end are left out, and
   * count for the totals alone.
   */
  readonly settleMicros: Micros;
  /** Requests that ended are compared once their `rollout-predicted` is there, or once their window has settled without. */
  readonly awaitsPredictions?: boolean;
  /** An arm's window with fewer samples of a time has no figure of it. */
  readonly windowSamplesMin: number;
  /** Of a canary: what all traffic may lose by its next step, and the least requests of each arm; defaults where left out. */
  readonly margin?: number;
  readonly stepSamplesMin?: number;
  readonly guardrails: readonly Guardrail[];
  readonly predictions: readonly Prediction[];
}

const GUARDRAILS_MAX = 64;
const PREDICTIONS_MAX = 96;
const EACH: readonly Membership[] = ["tenant", "class"];

/** What is wrong with the rules of a plan's judge, each with its path; empty where nothing is. */
export function rulesProblems(rules: JudgeRules, { arms }: RolloutPlan): string[] {
  const problems: string[] = [];
  const expect = (holds: boolean, path: string, expected: string, got: unknown) => {
    if (!holds) problems.push(`rules.${path}: expected ${expected}, got ${JSON.stringify(got)}`);
  };
  const { level, plannedCount, settleMicros, windowSamplesMin, guardrails, predictions } = rules;
  expect(level > 0 && level < 1, "level", "a number between 0 and 1", level);
  const { primary = PRIMARY_DEFAULT, margin = MARGIN_DEFAULT, stepSamplesMin = STEP_SAMPLES_DEFAULT } = rules;
  expect(isLimit(margin), "margin", "a number above 0", margin);
  expect(isCount(stepSamplesMin, 1), "stepSamplesMin", "an integer of at least 1", stepSamplesMin);
  expect(FIGURE_KEYS.includes(primary), "primary", `one of ${FIGURE_KEYS.join(", ")}`, primary);
  expect(plannedCount >= 1 && Number.isFinite(plannedCount), "plannedCount", "a number of at least 1", plannedCount);
  expect(isCount(settleMicros, 0), "settleMicros", "a duration of at least 0", settleMicros);
  expect(isCount(windowSamplesMin, 1), "windowSamplesMin", "an integer of at least 1", windowSamplesMin);
  expect(guardrails.length <= GUARDRAILS_MAX, "guardrails", `at most ${GUARDRAILS_MAX}`, guardrails.length);
  expect(predictions.length <= PREDICTIONS_MAX, "predictions", `at most ${PREDICTIONS_MAX}`, predictions.length);
  guardrails.forEach(({ figure, each, absoluteMax, relativeMax, samplesMin, overdueMicros = 1, holdMicros = 0 }, i) => {
    const path = `guardrails[${i}]`;
    expect(GUARDED_FIGURES.includes(figure), `${path}.figure`, `one of ${GUARDED_FIGURES.join(", ")}`, figure);
    const limited = isLimit(absoluteMax) || isLimit(relativeMax);
    const alone = each === undefined || (EACH.includes(each) && isLimit(relativeMax) && absoluteMax === undefined);
    expect(alone, `${path}.each`, `${EACH.join(" or ")}, with relativeMax alone`, each);
    expect(limited, path, "absoluteMax or relativeMax above 0", { absoluteMax, relativeMax });
    expect(isCount(holdMicros, 0), `${path}.holdMicros`, "a duration of at least 0", holdMicros);
    expect(isCount(overdueMicros, 1), `${path}.overdueMicros`, "a duration above 0", overdueMicros);
    expect(isCount(samplesMin, 1), `${path}.samplesMin`, "an integer of at least 1", samplesMin);
  });
  predictions.forEach(({ arm, metric, figure, low, high }, i) => {
    const path = `predictions[${i}]`;
    expect(isCount(arm, 1) && arm < arms.length, `${path}.arm`, `1 to ${arms.length - 1}`, arm);
    expect(TIME_METRICS.includes(metric), `${path}.metric`, `one of ${TIME_METRICS.join(", ")}`, metric);
    expect(TIME_FIGURES.includes(figure), `${path}.figure`, `one of ${TIME_FIGURES.join(", ")}`, figure);
    expect(low <= high, path, "low at most high", { low, high });
  });
  return problems;
}

function isCount(value: number, least: number): boolean {
  return Number.isSafeInteger(value) && value >= least;
}

function isLimit(value: number | undefined): boolean {
  return value !== undefined && value > 0 && Number.isFinite(value);
}
