import type { RolloutDocument } from "#config/rollout-section.ts";
import type { GuardedFigure, Guardrail } from "#core/rollout/judge/guardrail.ts";
import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";

/** How many times the control's any time may be. */
const RELATIVE_MAX = 1.25;

/** Every time as all see it, then what each tenant and class sees. */
const GUARDRAILS: NonNullable<RolloutDocument["guardrails"]> = [
  ...TIME_METRICS.flatMap((metric) =>
    (["p50", "p90", "p99"] as const).map((figure) => ({
      figure: `${metric}.${figure}`,
      relativeMax: RELATIVE_MAX,
      samplesMin: 100,
    })),
  ),
  { figure: "error-rate", relativeMax: 2, samplesMin: 100 },
  { figure: "refused-rate", relativeMax: 2, samplesMin: 100 },
  { figure: "miss-rate", relativeMax: 1.5, samplesMin: 100 },
  { figure: "slow-rate", relativeMax: 1.5, samplesMin: 100 },
  { figure: "error-rate", absoluteMaxShare: 0.05, samplesMin: 30 },
  { figure: "overdue-rate", relativeMax: 2, samplesMin: 100 },
  { figure: "overdue-rate", absoluteMaxShare: 0.9, samplesMin: 10 },
  ...(["tenant", "class"] as const).flatMap((each) => [
    { figure: "ttft.p50", relativeMax: 2, each, samplesMin: 30 },
    { figure: "e2e.p50", relativeMax: 2, each, samplesMin: 30 },
    { figure: "error-rate", relativeMax: 3, each, samplesMin: 30 },
  ]),
];

/** The same as a document has them. */
export function guardrailDocuments(): readonly object[] {
  return GUARDRAILS;
}

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
    ...(one.each !== undefined && { each: one.each }),
    samplesMin: one.samplesMin,
    ...(one.holdMillis !== undefined && { holdMicros: micros(one.holdMillis) }),
    ...(one.overdueMillis !== undefined && { overdueMicros: micros(one.overdueMillis) }),
  };
}

function micros(millis: number): Micros {
  return Math.round(millis * MICROS_PER_MILLI);
}
