import { figure } from "#page/part/figure.ts";
import { percent, time } from "#page/part/format.ts";
import { type Frame, lineChart } from "#page/part/line-chart.ts";
import { markupText } from "#page/part/markup-text.ts";
import { logScale } from "#page/part/scale.ts";
import type { Metric } from "../question/what-if.ts";
import { type PageData, type Series, seriesOf } from "./page-data.ts";
import { seriesValues } from "./series-values.ts";
import { quantile } from "#core/base/quantile.ts";

const WIDTH = 460;
const HEIGHT = 250;
const FRAME: Frame = { width: WIDTH, height: HEIGHT, left: 44, right: WIDTH - 10, top: 10, bottom: HEIGHT - 30 };
/** Points of a line; the tail has more of them than the middle. */
const POINTS = 160;
const SHARES = [0, 0.25, 0.5, 0.75, 1];

/** Cumulative distributions of one metric, what was observed beside all candidates, over time on a ratio axis. */
export function cdfChart(data: PageData, metric: Metric, title: string): string {
  const lines = seriesOf(data).map((series) => ({ series, values: seriesValues(data, series.name, metric) }));
  const shown = lines.filter(({ values }) => values.length > 0);
  if (shown.length === 0) return "";
  const low = Math.max(1, Math.min(...shown.map(({ values }) => quantile(values, 0.002))));
  const high = Math.max(low * 1.01, ...shown.map(({ values }) => values[values.length - 1]!));
  const { left, right, top, bottom } = FRAME;
  const drawing = lineChart({
    label: `Cumulative distribution of ${title}`,
    frame: FRAME,
    x: { scale: logScale(low, high, left, right), text: time, grid: true },
    y: {
      scale: { at: (share) => bottom - share * (bottom - top), ticks: SHARES },
      text: (share) => percent(share, 0),
      grid: true,
    },
    series: shown.map(({ series, values }) => lineOf(series, values, low)),
  });
  return markupText(figure(title, drawing));
}

function lineOf({ name, style }: Series, values: Float64Array, low: number) {
  const points = Array.from({ length: POINTS + 1 }, (_, i): readonly [number, number] => {
    const share = i / POINTS;
    return [Math.max(low, quantile(values, share)), share];
  });
  const figures = [0.5, 0.9, 0.99].map((share) => `p${share * 100} ${time(quantile(values, share))}`).join(", ");
  return { name, style, points, note: `${name}: ${figures}`, hides: true };
}
