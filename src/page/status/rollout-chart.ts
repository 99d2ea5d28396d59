import { figure } from "../part/figure.ts";
import { clock, duration } from "../part/format.ts";
import { type Frame, lineChart } from "../part/line-chart.ts";
import { element, type Markup } from "../part/markup.ts";
import { linearScale } from "../part/scale.ts";
import type { RolloutInterval } from "./overview.ts";

const WIDTH = 360;
const HEIGHT = 160;
const FRAME: Frame = { width: WIDTH, height: HEIGHT, left: 54, right: WIDTH - 28, top: 8, bottom: HEIGHT - 24 };
const ROOM = 1.1;

/** An arm's difference to the control with its interval, over time; where the simulator expects it is shaded. */
export function rolloutChart({ arm, metric, predicted, points }: RolloutInterval): Markup {
  const name = `${arm}: ${metric.toUpperCase()}`;
  const last = points.at(-1);
  if (last === undefined) return figure(name, element("p", {}, "Not enough has been measured yet."));
  const first = points[0]!.at;
  const until = Math.max(last.at, first + 1);
  const reach = reachOf(points, predicted);
  const within = (millis: number) => Math.min(reach, Math.max(-reach, millis));
  const signed = (millis: number) => `${millis > 0 ? "+" : ""}${duration(millis)}`;
  const tick = (millis: number) => (Math.abs(millis) < 1e-9 ? "0" : signed(millis).replace(/\.0+ /, " "));
  const expected =
    predicted === undefined
      ? []
      : [{ style: "expected", points: [first, until].map((at) => [at, predicted.low, predicted.high] as const) }];
  const chart = lineChart({
    label: `${name}, difference to the control over time`,
    frame: FRAME,
    x: {
      scale: { ...linearScale(first, until, FRAME.left, FRAME.right), ticks: [first, until] },
      text: clock,
      grid: false,
    },
    y: { scale: linearScale(-reach, reach, FRAME.bottom, FRAME.top, 4), text: tick, grid: true },
    bands: [
      ...expected,
      { style: "s1", points: points.map(({ at, low, high }) => [at, within(low), within(high)] as const) },
    ],
    series: [
      { name: "control", style: "thin soft", points: [[first, 0] as const, [until, 0] as const] },
      { name: "mean", style: "s1", points: points.map(({ at, mean }) => [at, within(mean)] as const) },
    ],
  });
  const text = `${signed(last.mean)} [${signed(last.low)}, ${signed(last.high)}]`;
  const expectedText =
    predicted === undefined
      ? ""
      : `predicted ${signed(predicted.low)} to ${signed(predicted.high)}: ${predicted.verdict}`;
  return figure(
    name,
    element(
      "span",
      { class: "legend" },
      element("b", { class: last.low > 0 ? "bad" : last.high < 0 ? "good" : undefined }, text),
      expectedText !== "" &&
        element("span", { class: predicted?.verdict === "contradicted" ? "bad" : undefined }, expectedText),
    ),
    chart,
  );
}

/** The first intervals are as wide as anything: they must not press the later ones flat. */
function reachOf(points: RolloutInterval["points"], predicted: RolloutInterval["predicted"]): number {
  const widths = points.map(({ low, high }) => Math.max(Math.abs(low), Math.abs(high))).toSorted((a, b) => a - b);
  const usual = widths[Math.floor(widths.length / 2)]!;
  const last = points.at(-1)!;
  const ends = [last.low, last.high, predicted?.low ?? 0, predicted?.high ?? 0, usual];
  return ROOM * Math.max(1e-3, ...ends.map(Math.abs));
}
