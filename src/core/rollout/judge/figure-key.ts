import { TIME_FIGURES, TIME_METRICS, type TimeFigure, type TimeMetric } from "./outcome.ts";

/** A figure that arms are compared by. */
export type FigureKey = `${TimeMetric}.${TimeFigure}`;

export const FIGURE_KEYS: readonly FigureKey[] = TIME_METRICS.flatMap((metric) =>
  TIME_FIGURES.map((figure) => `${metric}.${figure}` as const),
);

/** What a rollout is to find, where it names nothing else. */
export const PRIMARY_DEFAULT: FigureKey = "e2e.mean";
