import { point } from "./format.ts";
import { element, type Markup } from "./markup.ts";
import type { Scale } from "./scale.ts";

export interface IntervalRow {
  readonly name: string;
  /** What stands at the right of it. */
  readonly text: string;
  readonly style: string;
  readonly value: number;
  /** Thick. */
  readonly inner?: Ends;
  /** Thin, with its meaning for a pointer that rests on it. */
  readonly outer?: Ends & { readonly note: string };
}

interface Ends {
  readonly low: number;
  readonly high: number;
}

export interface IntervalChart {
  readonly label: string;
  readonly scale: Scale;
  readonly tickText: (tick: number) => string;
  readonly rows: readonly IntervalRow[];
  /** Shaded over all rows. */
  readonly band?: Ends & { readonly note: string };
  /** An upright line, with its meaning; at 0 there is always one. */
  readonly mark?: { readonly at: number; readonly note: string };
}

const ROW = 34;
const INTERVAL_WIDTH = 460;
export const INTERVAL_LEFT = 12;
export const INTERVAL_RIGHT = INTERVAL_WIDTH - 12;
const NEARLY_ZERO = 1e-9;
/** Of a label's characters, at most. */
const CHAR_WIDTH = 6.4;
const NAME_CHARS_MIN = 8;
/** Of the text at a tick, at most. */
const TICK_TEXT_HALF = 26;

/** Values with their intervals, a row each, on one axis: an `svg`. */
export function intervalChart({ label, scale, tickText, rows, band, mark }: IntervalChart): Markup {
  const bottom = rows.length * ROW + 8;
  const { at } = scale;
  const ticks = scale.ticks.flatMap((tick) => {
    const x = point(at(tick));
    const isZero = Math.abs(tick) < NEARLY_ZERO;
    return [
      element("line", { class: isZero ? "zero" : "grid", x1: x, x2: x, y1: 4, y2: bottom }),
      element("text", { class: `tick${anchor(at(tick))}`, x, y: bottom + 16 }, isZero ? "0" : tickText(tick)),
    ];
  });
  return element(
    "svg",
    { viewBox: `0 0 ${INTERVAL_WIDTH} ${bottom + 24}`, role: "img", "aria-label": label },
    band !== undefined &&
      element(
        "rect",
        { class: "band", x: point(at(band.low)), width: point(at(band.high) - at(band.low)), y: 4, height: bottom - 4 },
        element("title", {}, band.note),
      ),
    ticks,
    mark !== undefined &&
      element(
        "line",
        { class: "line live mark", x1: point(at(mark.at)), x2: point(at(mark.at)), y1: 4, y2: bottom },
        element("title", {}, mark.note),
      ),
    rows.flatMap((row, i) => drawn(row, i * ROW + 8, at)),
  );
}

/** A tick's text stands below its line, but within the picture. */
function anchor(x: number): string {
  if (x < TICK_TEXT_HALF) return "";
  return x > INTERVAL_WIDTH - TICK_TEXT_HALF ? " end" : " mid";
}

function drawn({ name, text, style, value, inner, outer }: IntervalRow, top: number, x: Scale["at"]): Markup[] {
  const y = top + 21;
  const between = (kind: string, { low, high }: Ends, note?: string): Markup =>
    element(
      "line",
      { class: `line ${kind} ${style}`, x1: point(x(low)), x2: point(x(high)), y1: y, y2: y },
      note !== undefined && element("title", {}, note),
    );
  return [
    element("text", { class: "label", x: INTERVAL_LEFT, y: top + 10 }, besideText(name, text)),
    element("text", { class: "label end", x: INTERVAL_RIGHT, y: top + 10 }, text),
    ...(outer === undefined ? [] : [between("thin", outer, outer.note)]),
    ...(inner === undefined ? [] : [between("thick", inner)]),
    element(
      "circle",
      { class: `dot ${style}`, cx: point(x(value)), cy: y, r: 4.5 },
      element("title", {}, `${name}: ${text}`),
    ),
  ];
}

/** The name as far as it has room before the text at its right; the dot's title has all of it. */
function besideText(name: string, text: string): string {
  const room = Math.floor((INTERVAL_RIGHT - INTERVAL_LEFT) / CHAR_WIDTH) - text.length - 1;
  const chars = Math.max(NAME_CHARS_MIN, room);
  return name.length <= chars ? name : `${name.slice(0, chars - 1)}…`;
}
