import { figure } from "../part/figure.ts";
import { clock, duration } from "../part/format.ts";
import { type Frame, lineChart } from "../part/line-chart.ts";
import { element, type Markup } from "../part/markup.ts";
import { linearScale } from "../part/scale.ts";
import type { RolloutWindows } from "./overview.ts";

const WIDTH = 360;
const HEIGHT = 160;
const FRAME: Frame = { width: WIDTH, height: HEIGHT, left: 54, right: WIDTH - 28, top: 8, bottom: HEIGHT - 24 };
/** Colours that there are. */
const STYLES = 8;

/** Every arm's mean, window by window, shaded from its p50 to its p90. */
export function windowChart({ metric, arms }: RolloutWindows): Markup {
  const name = `Each arm: ${metric.toUpperCase()}`;
  const all = arms.flatMap(({ points }) => points);
  if (all.length === 0) return figure(name, element("p", {}, "No window has been compared yet."));
  const times = all.map(({ at }) => at);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const until = Math.max(last, first + 1);
  const highest = Math.max(1e-3, ...all.map(({ mean, high }) => Math.max(mean, high)));
  const styleOf = (arm: number) => `s${arm % STYLES}`;
  const chart = lineChart({
    label: `${name}, window by window`,
    frame: FRAME,
    x: {
      scale: { ...linearScale(first, until, FRAME.left, FRAME.right), ticks: first === last ? [first] : [first, last] },
      text: clock,
      grid: false,
    },
    y: {
      scale: linearScale(0, highest, FRAME.bottom, FRAME.top, 4),
      text: (millis) => (millis === 0 ? "0" : duration(millis).replace(/\.0+ /, " ")),
      grid: true,
    },
    bands: arms.map(({ points }, arm) => ({
      style: styleOf(arm),
      points: points.map(({ at, low, high }) => [at, low, high] as const),
    })),
    series: arms.map(({ name: of, points }, arm) => ({
      name: of,
      style: styleOf(arm),
      points: points.map(({ at, mean }) => [at, mean] as const),
    })),
  });
  const keys = arms.map(({ name: of, points }, arm) => {
    const mean = points.at(-1)?.mean;
    const text = `${of} ${mean === undefined ? "–" : duration(mean)}`;
    return element("span", { class: "value" }, element("i", { class: `dot ${styleOf(arm)}` }), text);
  });
  return figure(name, element("span", { class: "legend" }, keys), chart);
}
