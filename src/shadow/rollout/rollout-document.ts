import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { POOLS } from "../job/rollout-design.ts";
import type { PlannedFigureKey } from "../job/rollout-sample.ts";
import type { RolloutStudy } from "./rollout-study.ts";

/** Of the trace's parts, those that must lie where the others have them expected. */
const COVERED_MIN = 0.8;

/**
 * The recommended rollout as `gnomon rollout start` takes it, with what is predicted of it, so that a result which
 * contradicts that pauses it, and the limits that take it back. p99 is left out: that of a short window is not that of the whole.
 */
export function rolloutDocument(study: RolloutStudy, name: string, guardrails: readonly object[]): object {
  const { control, other, figure, recommendation, designs, shown } = study;
  const chosen = designs.find((one) => one.name === recommendation.design)!;
  const { valuesPerHour, hours = study.hours[0] ?? 1 } = chosen.figures[figure];
  // What parts of the trace itself did not keep to is no prediction.
  const kept = Object.entries(shown).filter(([key]) => {
    const { covered, of } = study.traffic[key as PlannedFigureKey] ?? { covered: 0, of: 1 };
    return covered >= COVERED_MIN * of;
  });
  const predictions = kept.flatMap(([key, { low, high }]) => {
    const [metric, of] = key.split(".");
    return of === "mean"
      ? [{ arm: "other", metric, figure: of, lowMillis: inMillis(low), highMillis: inMillis(high) }]
      : [];
  });
  const pool = (arm: number) => (chosen.design.kind === "pools" ? { pool: POOLS[arm]! } : {});
  return {
    name,
    arms: [
      { name: "control", profile: control, ...pool(0) },
      { name: "other", profile: other, ...pool(1) },
    ],
    design: designDocument(chosen.design),
    level: study.level,
    primary: figure,
    plannedCount: Math.max(1, Math.round(valuesPerHour * hours) || 1),
    guardrails,
    predictions,
  };
}

function designDocument(design: Design): object {
  const { windowMicros, ...rest } = design;
  const windowMillis = windowMicros / MICROS_PER_MILLI;
  if (!("washoutMicros" in rest)) return { ...rest, windowMillis };
  const { washoutMicros, ...others } = rest;
  return { ...others, windowMillis, washoutMillis: washoutMicros / MICROS_PER_MILLI };
}

function inMillis(micros: number): number {
  return Math.round(micros) / MICROS_PER_MILLI;
}
