import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { COVERAGE, type Interval, predictionInterval } from "../figure/interval.ts";
import { normalQuantile } from "../figure/normal-quantile.ts";
import type { DesignStudy } from "./design-study.ts";
import { STUDENT_ALL, type TrafficErrors } from "./traffic-error.ts";
import { type PlannedFigureKey, PLANNED_FIGURES, type RolloutSample } from "../job/rollout-sample.ts";

/** Where a design is predicted to come out in the end, the other arm less the control, microseconds. */
export type ShownIntervals = Readonly<Partial<Record<PlannedFigureKey, Interval>>>;

const ERRORS = normalQuantile((1 + COVERAGE) / 2);

/** One rollout, simulated on the engines as they were fitted and on drawn ones, with the same draw of arms. */
export interface RolloutPair {
  readonly fitted: RolloutSample;
  readonly drawn: RolloutSample;
}

/**
 * What a rollout shows on another draw of such traffic: the mean of the simulated ones, and around it what their own number
 * leaves to chance, what parts of the trace differ by and, where the engine's calibration states how far it may be off, what
 * drawn engines make of it. Nothing of a figure whose traffic is too little to differ in parts.
 */
export function shownIntervals(
  { figures }: DesignStudy,
  pairs: readonly RolloutPair[],
  traffic: TrafficErrors,
): ShownIntervals {
  const all = TIME_METRICS.flatMap((metric) =>
    PLANNED_FIGURES.flatMap((figure): [PlannedFigureKey, Interval][] => {
      const key: PlannedFigureKey = `${metric}.${figure}`;
      const { estimate, biasError } = figures[key];
      // Without what the traffic leaves open the interval would be of this trace alone.
      const ofTraffic = traffic[key];
      if (ofTraffic === undefined || !Number.isFinite(estimate) || !Number.isFinite(biasError)) return [];
      const shown = pairs.map((pair) => {
        const [fitted, drawn] = [pair.fitted, pair.drawn].map((sample) => sample.figures[key].plain.mean);
        return estimate + drawn! - fitted!;
      });
      const engines = predictionInterval(estimate, shown, "linear") ?? { low: estimate, high: estimate };
      // The trace was one draw of the traffic, and what the rollout meets is another.
      const drawn = STUDENT_ALL * Math.SQRT2 * ofTraffic.error;
      const low = estimate - Math.hypot(estimate - engines.low, ERRORS * biasError, drawn);
      const high = estimate + Math.hypot(engines.high - estimate, ERRORS * biasError, drawn);
      return [[key, { low, high }]];
    }),
  );
  return Object.fromEntries(all);
}
