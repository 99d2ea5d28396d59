import type { Metric } from "../question/what-if.ts";
import { escaped, percent, point, time } from "./markup.ts";
import { type PageData, type Series, seriesOf } from "./page-data.ts";
import { logScale } from "./scale.ts";
import { seriesValues } from "./series-values.ts";

const WIDTH = 460;
const HEIGHT = 250;
const LEFT = 44;
const RIGHT = WIDTH - 10;
const TOP = 10;
const BOTTOM = HEIGHT - 30;
/** Points of a line; the tail has more of them than the middle. */
const POINTS = 160;

/** Cumulative distributions of one metric, what was observed beside all candidates, over time on a ratio axis. */
export function cdfChart(data: PageData, metric: Metric, title: string): string {
  const lines = seriesOf(data).map((series) => ({ series, values: seriesValues(data, series.name, metric) }));
  const shown = lines.filter(({ values }) => values.length > 0);
  if (shown.length === 0) return "";
  const low = Math.max(1, Math.min(...shown.map(({ values }) => quantile(values, 0.002))));
  const high = Math.max(low * 1.01, ...shown.map(({ values }) => values[values.length - 1]!));
  const x = logScale(low, high, LEFT, RIGHT);
  const y = (share: number) => BOTTOM - share * (BOTTOM - TOP);
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      `<line class="grid" x1="${LEFT}" x2="${RIGHT}" y1="${point(y(share))}" y2="${point(y(share))}"/><text class="tick end" x="${LEFT - 6}" y="${point(y(share) + 4)}">${percent(share, 0)}</text>`,
  );
  const marks = x.ticks.map(
    (tick) =>
      `<line class="grid" x1="${point(x.at(tick))}" x2="${point(x.at(tick))}" y1="${TOP}" y2="${BOTTOM}"/><text class="tick mid" x="${point(x.at(tick))}" y="${BOTTOM + 18}">${time(tick)}</text>`,
  );
  const paths = shown.map(({ series, values }) => pathOf(series, values, low, x.at, y));
  return `<figure class="card"><figcaption>${title}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Cumulative distribution of ${title}">${grid.join("")}${marks.join("")}${paths.join("")}</svg></figure>`;
}

function pathOf(
  { name, style }: Series,
  values: Float64Array,
  low: number,
  x: (value: number) => number,
  y: (share: number) => number,
): string {
  const points: string[] = [];
  for (let i = 0; i <= POINTS; i++) {
    const share = i / POINTS;
    points.push(`${point(x(Math.max(low, quantile(values, share))))},${point(y(share))}`);
  }
  const figures = [0.5, 0.9, 0.99].map((share) => `p${share * 100} ${time(quantile(values, share))}`).join(", ");
  return `<polyline class="line ${style}" data-series="${escaped(name)}" points="${points.join(" ")}"><title>${escaped(name)}: ${figures}</title></polyline>`;
}

function quantile(ascending: Float64Array, share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(share * ascending.length))] ?? NaN;
}
