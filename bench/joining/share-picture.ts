import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { type LineSeries, lineChart } from "#page/part/line-chart.ts";
import { element, type Markup } from "#page/part/markup.ts";
import { markupText } from "#page/part/markup-text.ts";
import { linearScale } from "#page/part/scale.ts";
import { NEWCOMER, RETURNING, SLOW } from "./changing-fleet.ts";
import type { JoiningRun } from "./joining-run.ts";

const WIDTH = 760;
const PLOT = { width: WIDTH, height: 190, left: 48, right: 744, top: 30, bottom: 164 };
const WINDOW_MICROS = 5 * MICROS_PER_SECOND;
const SHOWN: readonly (readonly [id: EndpointId, style: string, text: string])[] = [
  [NEWCOMER, "joins", "joins cold"],
  [RETURNING, "back", "is killed, comes back"],
  [SLOW, "slow", "slow board"],
  ["usual-0", "usual", "one of the others"],
];
const STYLE = `text{font:12px system-ui,sans-serif;fill:#5b6472}.title{font-weight:600;fill:#1b1f27}.mid{text-anchor:middle}
.end{text-anchor:end}.grid{stroke:#e3e7ee}.line{fill:none;stroke-width:2}.joins{stroke:#1769e0}.back{stroke:#0a7a3d}
.slow{stroke:#b3261e}.usual{stroke:#9aa5b5}.even{stroke:#1b1f27;stroke-width:1;stroke-dasharray:3 4}
.when{stroke:#5b6472;stroke-dasharray:2 3}`;

/** Shares of first turns and of all requests over time, in windows of 5 s, as an SVG of its own. */
export function sharePicture(title: string, run: JoiningRun): string {
  const panels = [
    panel(run, `First turns of conversations, share of each endpoint (${title})`, (id, from, to) =>
      shareOf(run, id, from, to, true),
    ),
    panel(run, "All requests", (id, from, to) => shareOf(run, id, from, to, false)),
    panel(run, "Tokens to compute", (id, from, to) => run.shares.tokenShare(id, from, to)),
  ];
  const height = panels.length * PLOT.height + 34;
  const keys = SHOWN.map(([, style, text], i) =>
    element(
      "g",
      { transform: `translate(${PLOT.left + i * 170} ${height - 12})` },
      element("line", { class: `line ${style}`, x1: 0, x2: 20, y1: -4, y2: -4 }),
      element("text", { x: 26, y: 0 }, text),
    ),
  );
  const svg = element(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": title },
    element("rect", { width: WIDTH, height, fill: "#fff" }),
    panels.map((one, i) => element("g", { transform: `translate(0 ${i * PLOT.height})` }, one)),
    keys,
  );
  // In a file of its own its style has to be within it.
  return markupText(svg).replace(">", `><style>${STYLE}</style>`);
}

function panel(run: JoiningRun, title: string, of: (id: EndpointId, from: Micros, to: Micros) => number): Markup[] {
  const { fleet, lastsMicros } = run;
  const windows = Math.floor(lastsMicros / WINDOW_MICROS);
  const seconds = (micros: Micros): number => micros / MICROS_PER_SECOND;
  const series = SHOWN.map(([id, style, name]): LineSeries => {
    const points = Array.from({ length: windows }, (_, i) => {
      const from = i * WINDOW_MICROS;
      return [seconds(from + WINDOW_MICROS / 2), 100 * of(id, from, from + WINDOW_MICROS)] as const;
    });
    return { name, style, points };
  });
  const ends = seconds(windows * WINDOW_MICROS);
  const even = 100 / (fleet.engines.length + 1);
  const most = Math.max(even, ...series.flatMap(({ points }) => points.map(([, share]) => share || 0)));
  const x = linearScale(0, ends, PLOT.left, PLOT.right, 10);
  const y = linearScale(0, most, PLOT.bottom, PLOT.top, 4);
  const chart = lineChart({
    label: title,
    frame: PLOT,
    x: { scale: x, text: (tick) => `${tick} s`, grid: false },
    y: { scale: y, text: (tick) => `${tick} %`, grid: true },
    series: [
      {
        name: "even share",
        style: "even",
        points: [
          [0, even],
          [ends, even],
        ],
      },
      ...series,
    ],
  });
  const marks = [fleet.joinsAt, fleet.killedAt, fleet.backAt].map((at) => {
    const place = x.at(seconds(at));
    return element("line", { class: "when", x1: place, x2: place, y1: PLOT.top, y2: PLOT.bottom });
  });
  return [
    element("text", { class: "title", x: PLOT.left, y: 18 }, title),
    ...marks,
    ...chart.children.filter(isMarkup),
  ];
}

function isMarkup(child: Markup["children"][number]): child is Markup {
  return typeof child === "object";
}

function shareOf({ shares }: JoiningRun, id: EndpointId, from: Micros, to: Micros, firstTurns: boolean): number {
  return shares.share(id, from, to, firstTurns).share;
}
