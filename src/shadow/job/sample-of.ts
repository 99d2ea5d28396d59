import type { Judge } from "#core/rollout/judge/judge.ts";
import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import type { RolloutPlan } from "#core/rollout/plan/rollout-plan.ts";
import { type PlannedFigureKey, type FigureSample, PLANNED_FIGURES, type RolloutSample } from "./rollout-sample.ts";

const OTHER = 1;

/** What a judge of two arms has found. */
export function sampleOf(judge: Judge, { design }: RolloutPlan): Omit<RolloutSample, "takenBack"> {
  const clusters = design.kind === "split" || design.kind === "canary";
  const figures = TIME_METRICS.flatMap((metric) =>
    PLANNED_FIGURES.map((figure): [PlannedFigureKey, FigureSample] => {
      const [plain, adjusted] = judge.estimates(OTHER, metric, figure);
      const blocks = clusters ? undefined : judge.blockSums(OTHER, metric, figure);
      return [`${metric}.${figure}`, { plain, adjusted, blocks }];
    }),
  );
  return {
    figures: Object.fromEntries(figures) as unknown as RolloutSample["figures"],
    requests: judge.totals.reduce((sum, { counts }) => sum + counts.requests, 0),
    failed: judge.totals.map(({ counts }) => counts.failed + counts.refused),
  };
}
