import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { COVERAGE, type Interval, predictionInterval } from "../question/interval.ts";
import type { ReplicaFigures } from "../question/job.ts";
import { normalQuantile } from "../question/normal-quantile.ts";
import type { DesignStudy } from "./design-study.ts";
import { type FigureKey, PLANNED_FIGURES } from "./rollout-sample.ts";

/** Where a design is predicted to come out in the end, the other arm less the control, microseconds. */
export type ShownIntervals = Readonly<Partial<Record<FigureKey, Interval>>>;

const ERRORS = normalQuantile((1 + COVERAGE) / 2);

/**
 * What a rollout shows when it has run long: the mean of the simulated ones, and around it what their own number leaves to
 * chance and, where the engine's calibration states how far it may be off, what drawn engines make of the true difference.
 */
export function shownIntervals(
  { figures }: DesignStudy,
  control: readonly ReplicaFigures[],
  other: readonly ReplicaFigures[],
): ShownIntervals {
  const all = TIME_METRICS.flatMap((metric) =>
    PLANNED_FIGURES.flatMap((figure): [FigureKey, Interval][] => {
      const key: FigureKey = `${metric}.${figure}`;
      const { truth, estimate, biasError } = figures[key];
      if (!Number.isFinite(estimate) || !Number.isFinite(biasError)) return [];
      const differences = other.flatMap((one, i) => {
        const [own, base] = [one.figures[`${metric}Micros`], control[i]?.figures[`${metric}Micros`]];
        return own === undefined || base === undefined ? [] : [own[figure] - base[figure]];
      });
      const drawn = predictionInterval(truth, differences, "linear") ?? { low: truth, high: truth };
      const low = estimate - Math.hypot(truth - drawn.low, ERRORS * biasError);
      const high = estimate + Math.hypot(drawn.high - truth, ERRORS * biasError);
      return [[key, { low, high }]];
    }),
  );
  return Object.fromEntries(all);
}
