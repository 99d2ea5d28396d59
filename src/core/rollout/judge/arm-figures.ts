import type { Micros } from "../../base/units.ts";
import type { ArmTally } from "./arm-tally.ts";
import { TIME_FIGURES, TIME_METRICS, type TimeFigure, type TimeMetric } from "./outcome.ts";

/** What one arm did in one window, for people and pages; null where it is not known. */
export interface ArmFigures {
  readonly requests: number;
  readonly failed: number;
  readonly refused: number;
  /** Share of prompt tokens that were found in a cache. */
  readonly hitRatio: number | null;
  /** Requests of the busiest endpoint over the mean. */
  readonly imbalance: number | null;
  /** Microseconds. */
  readonly times: Readonly<Record<TimeMetric, Readonly<Record<TimeFigure, number | null>>>>;
}

export interface WindowFigures {
  readonly window: number;
  readonly endAt: Micros;
  /** Of every arm; in a switchback those that had the window alone have requests. */
  readonly arms: readonly ArmFigures[];
}

/** An arm's figures as of now. */
export function armFigures(tally: ArmTally): ArmFigures {
  const { requests, failed, refused } = tally.counts;
  const times = TIME_METRICS.map((metric) => {
    const figures = TIME_FIGURES.map((figure) => [figure, known(tally.time(metric, figure))] as const);
    return [metric, Object.fromEntries(figures)] as const;
  });
  return {
    requests,
    failed,
    refused,
    hitRatio: known(tally.hitRatio),
    imbalance: known(tally.imbalance),
    times: Object.fromEntries(times) as unknown as ArmFigures["times"],
  };
}

function known(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
