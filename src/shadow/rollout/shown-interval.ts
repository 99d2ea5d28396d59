import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { COVERAGE, type Interval, predictionInterval } from "../figure/interval.ts";
import { normalQuantile } from "../figure/normal-quantile.ts";
import type { DesignStudy } from "./design-study.ts";
import { STUDENT_ALL, type TrafficErrors } from "./traffic-error.ts";
import { type PlannedFigureKey, PLANNED_FIGURES, type RolloutSample } from "../job/rollout-sample.ts";

/** Where a rollout is predicted to come out in the end, the other arm less the control, microseconds. */
export type ShownIntervals = Readonly<Partial<Record<PlannedFigureKey, Interval>>>;

const ERRORS = normalQuantile((1 + COVERAGE) / 2);

/** One rollout, simulated on the engines as they were fitted and on drawn ones, with the same draw of arms. */
export interface RolloutPair {
  readonly fitted: RolloutSample;
  readonly drawn: RolloutSample;
}

/**
 * What one rollout of so many hours shows on another draw of such traffic: the mean of the simulated ones, and around it what
 * chance makes of the one, what their own number leaves to it, what parts of the trace differ by and, where the engine's
 * calibration states how far it may be off, what drawn engines make of it. Nothing of a figure whose traffic is too little to
 * differ in parts.
 */
export function shownIntervals(
  { figures, design }: Pick<DesignStudy, "figures" | "design">,
  pairs: readonly RolloutPair[],
  traffic: TrafficErrors,
  hours: number,
): ShownIntervals {
  // What blocks of the other draw differ by is in the deviation of a rollout; clusters stay what they are.
  const draws = design.kind === "switchback" || design.kind === "pools" ? 1 : Math.SQRT2;
  const all = TIME_METRICS.flatMap((metric) =>
    PLANNED_FIGURES.flatMap((figure): [PlannedFigureKey, Interval][] => {
      const key: PlannedFigureKey = `${metric}.${figure}`;
      const { estimate, biasError, runError, clusters, valuesPerHour } = figures[key];
      // Without what the traffic leaves open the interval would be of this trace alone.
      const ofTraffic = traffic[key];
      if (ofTraffic === undefined || biasError === undefined || runError === undefined) return [];
      if (![estimate, biasError, runError].every(Number.isFinite)) return [];
      const shown = pairs.map((pair) => {
        const [fitted, drawn] = [pair.fitted, pair.drawn].map((sample) => sample.figures[key].plain.mean);
        return estimate + drawn! - fitted!;
      });
      const engines = predictionInterval(estimate, shown, "linear") ?? { low: estimate, high: estimate };
      const ofOne = runError * Math.sqrt(clusters / (valuesPerHour * hours));
      const chance = Math.hypot(ERRORS * biasError, ERRORS * ofOne, STUDENT_ALL * draws * ofTraffic.error);
      const low = estimate - Math.hypot(estimate - engines.low, chance);
      const high = estimate + Math.hypot(engines.high - estimate, chance);
      return [[key, { low, high }]];
    }),
  );
  return Object.fromEntries(all);
}
