import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { POOLS } from "../job/rollout-design.ts";
import type { RolloutStudy } from "./rollout-study.ts";

/**
 * The recommended rollout as `gnomon rollout start` takes it, with what is predicted of it, so that a result which
 * contradicts that pauses it. p99 is left out: that of a short window is not that of the whole.
 */
export function rolloutDocument(study: RolloutStudy, name: string): object {
  const { control, other, figure, recommendation, designs, shown } = study;
  const chosen = designs.find((one) => one.name === recommendation.design)!;
  const { valuesPerHour, hours = study.hours[0] ?? 1 } = chosen.figures[figure];
  const predictions = Object.entries(shown).flatMap(([key, { low, high }]) => {
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
    plannedCount: Math.max(1, Math.round(valuesPerHour * hours)),
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
