import type { RolloutDocument } from "#config/rollout-section.ts";
import type { GuardedFigure, Guardrail } from "#core/rollout/judge/guardrail.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";

/** Answers that do not stream have no first token, so the end is watched beside it. */
const GUARDRAILS: NonNullable<RolloutDocument["guardrails"]> = [
  { figure: "ttft.p90", relativeMax: 2, samplesMin: 30, holdMillis: 1_000 },
  { figure: "e2e.p90", relativeMax: 2, samplesMin: 30, holdMillis: 1_000 },
  { figure: "error-rate", absoluteMaxShare: 0.05, samplesMin: 30 },
  { figure: "overdue-rate", absoluteMaxShare: 0.05, samplesMin: 10 },
];

/** Those of a rollout whose document names none. */
export function defaultGuardrails(): readonly Guardrail[] {
  return GUARDRAILS.map(guardrailOf);
}

/** A guardrail as a document has it. */
export function guardrailOf(one: NonNullable<RolloutDocument["guardrails"]>[number]): Guardrail {
  const absoluteMax = one.absoluteMaxMillis === undefined ? one.absoluteMaxShare : micros(one.absoluteMaxMillis);
  return {
    figure: one.figure as GuardedFigure,
    ...(absoluteMax !== undefined && { absoluteMax }),
    ...(one.relativeMax !== undefined && { relativeMax: one.relativeMax }),
    samplesMin: one.samplesMin,
    ...(one.holdMillis !== undefined && { holdMicros: micros(one.holdMillis) }),
    ...(one.overdueMillis !== undefined && { overdueMicros: micros(one.overdueMillis) }),
  };
}

function micros(millis: number): Micros {
  return Math.round(millis * MICROS_PER_MILLI);
}
