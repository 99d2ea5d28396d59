import { point } from "./format.ts";
import { element, type Markup } from "./markup.ts";
import type { Scale } from "./scale.ts";

/** Measures of a drawing, in its own units: it is as wide as what it stands in. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export interface Axis {
  readonly scale: Scale;
  /** What stands at a mark. */
  readonly text: (tick: number) => string;
  /** Whether a line goes through the drawing at each mark. */
  readonly grid: boolean;
}

export interface LineSeries {
  readonly name: string;
  /** CSS classes that give it its colour and width. */
  readonly style: string;
  /** A value that is no number breaks the line. */
  readonly points: readonly (readonly [x: number, y: number])[];
  /** What a pointer that rests on it shows. */
  readonly note?: string;
  /** A key of the page hides and shows it. */
  readonly hides?: boolean;
}

/** A shaded area between two values. */
export interface Band {
  readonly style: string;
  readonly points: readonly (readonly [x: number, low: number, high: number])[];
}

export interface LineChart {
  /** What it is, for who cannot see it. */
  readonly label: string;
  readonly frame: Frame;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly LineSeries[];
  readonly bands?: readonly Band[];
  /** An upright line, such as where a pointer is. */
  readonly cursor?: number;
}

const TICK_DROP = 17;
const TICK_GAP = 6;
/** From a line of text to its middle. */
const TICK_MIDDLE = 4;

/** A drawing of lines over two axes, as an `svg`. */
export function lineChart({ label, frame, x, y, series, bands = [], cursor }: LineChart): Markup {
  const { left, right, top, bottom } = frame;
  const levels = y.scale.ticks.flatMap((tick) => {
    const at = point(y.scale.at(tick));
    const text = element(
      "text",
      { class: "tick end", x: left - TICK_GAP, y: point(Number(at) + TICK_MIDDLE) },
      y.text(tick),
    );
    return y.grid ? [element("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }), text] : [text];
  });
  const marks = x.scale.ticks.flatMap((tick) => {
    const at = point(x.scale.at(tick));
    const text = element("text", { class: "tick mid", x: at, y: bottom + TICK_DROP }, x.text(tick));
    return x.grid ? [element("line", { class: "grid", x1: at, x2: at, y1: top, y2: bottom }), text] : [text];
  });
  const upright = cursor === undefined ? "" : point(x.scale.at(cursor));
  return element(
    "svg",
    { viewBox: `0 0 ${frame.width} ${frame.height}`, role: "img", "aria-label": label },
    levels,
    marks,
    bands.flatMap((band) => area(band, x.scale, y.scale)),
    series.flatMap((one) => lines(one, x.scale, y.scale)),
    upright !== "" && element("line", { class: "cursor", x1: upright, x2: upright, y1: top, y2: bottom }),
  );
}

function lines({ name, style, points, note, hides = false }: LineSeries, x: Scale, y: Scale): Markup[] {
  return runs(points, ([, value]) => value).map((run) =>
    element(
      "polyline",
      {
        class: `line ${style}`,
        "data-series": hides ? name : undefined,
        points: run.map(([at, value]) => `${point(x.at(at))},${point(y.at(value))}`).join(" "),
      },
      note !== undefined && element("title", {}, note),
    ),
  );
}

function area({ style, points }: Band, x: Scale, y: Scale): Markup[] {
  return runs(points, ([, low, high]) => low + high).map((run) => {
    const upper = run.map(([at, , high]) => `${point(x.at(at))},${point(y.at(high))}`);
    const lower = run.toReversed().map(([at, low]) => `${point(x.at(at))},${point(y.at(low))}`);
    return element("polygon", { class: `area ${style}`, points: [...upper, ...lower].join(" ") });
  });
}

/** Rows of points without a gap. One alone is drawn as a short line, for a point has no length. */
function runs<T extends readonly [x: number, ...rest: number[]]>(
  points: readonly T[],
  value: (one: T) => number,
): T[][] {
  const found: T[][] = [];
  let run: T[] = [];
  for (const one of points) {
    if (Number.isFinite(value(one))) run.push(one);
    else if (run.length > 0) {
      found.push(run);
      run = [];
    }
  }
  if (run.length > 0) found.push(run);
  return found.map((run) => (run.length === 1 ? [run[0]!, run[0]!] : run));
}
