import { figure } from "../part/figure.ts";
import { clock, compact, duration, percent } from "../part/format.ts";
import { type Frame, lineChart } from "../part/line-chart.ts";
import { type MarkupContent, element, type Markup } from "../part/markup.ts";
import { linearScale } from "../part/scale.ts";
import type { TrafficCard, TrafficSlot } from "./overview.ts";
import type { PageActions, PageState } from "./page-state.ts";
import { modelTable } from "./model-table.ts";
import { section } from "./section.ts";

const WIDTH = 360;
const HEIGHT = 150;
const FRAME: Frame = { width: WIDTH, height: HEIGHT, left: 50, right: WIDTH - 16, top: 8, bottom: HEIGHT - 24 };
const MINUTES_PER_MARK = 5;
const MINUTES_MIN = 3;
/** Marks a minute apart that have room. */
const MARKS_MAX = 6;
const MILLIS_PER_MINUTE = 60_000;

interface Line {
  readonly name: string;
  readonly style: string;
  readonly of: (slot: TrafficSlot) => number;
}

interface Chart {
  readonly title: string;
  readonly text: (value: number) => string;
  readonly lines: readonly Line[];
  /** The axis goes at least as far. */
  readonly atLeast: number;
}

/** What happened over the last minutes: four drawings over the same time. */
export function trafficSection(
  state: PageState,
  traffic: TrafficCard,
  actions: Pick<PageActions, "moveCursor">,
): Markup {
  const axis = timeAxis(state.slots, traffic);
  const minutes = Math.round(((axis.newest - axis.oldest + 1) * traffic.slotMillis) / MILLIS_PER_MINUTE);
  const draw = (chart: Chart) => drawing(chart, state, traffic, axis, actions);
  return section(
    "traffic",
    "Traffic",
    element("p", {}, `The last ${minutes} minutes, a point for every ${traffic.slotMillis / 1_000} seconds.`),
    element("div", { class: "cards small" }, chartsOf(traffic.slotMillis).map(draw)),
    traffic.models.length > 0 && element("p", {}, "The last minute, by model."),
    traffic.models.length > 0 && element("div", { class: "card table" }, modelTable(traffic)),
  );
}

function chartsOf(slotMillis: number): readonly Chart[] {
  const perSecond = 1_000 / slotMillis;
  return [
    {
      title: "Requests per second",
      text: (value) => `${compact(value)}/s`,
      atLeast: 1,
      lines: [
        { name: "all", style: "s0", of: ({ requests }) => requests * perSecond },
        { name: "failed", style: "s1", of: ({ failed }) => failed * perSecond },
        { name: "refused", style: "s4", of: ({ refused }) => refused * perSecond },
      ],
    },
    {
      title: "Time to first token",
      text: duration,
      atLeast: 1,
      lines: [
        { name: "p50", style: "s0", of: ({ ttft }) => ttft?.p50 ?? NaN },
        { name: "p99", style: "thin s3", of: ({ ttft }) => ttft?.p99 ?? NaN },
      ],
    },
    {
      title: "Time per output token",
      text: duration,
      atLeast: 1,
      lines: [
        { name: "p50", style: "s0", of: ({ tpot }) => tpot?.p50 ?? NaN },
        { name: "p99", style: "thin s3", of: ({ tpot }) => tpot?.p99 ?? NaN },
      ],
    },
    {
      title: "Prompt tokens cached",
      text: (value) => percent(value, 0),
      atLeast: 1,
      lines: [{ name: "hit ratio", style: "s2", of: ({ hitRatio }) => hitRatio ?? NaN }],
    },
  ];
}

/** As long as there is something to show; a gateway that has just started has little. */
function timeAxis(slots: readonly TrafficSlot[], { slotsMax, slotMillis }: TrafficCard) {
  const newest = slots.at(-1)?.slot ?? 0;
  const least = (MINUTES_MIN * MILLIS_PER_MINUTE) / slotMillis;
  const span = Math.min(slotsMax, Math.max(least, newest - (slots[0]?.slot ?? newest) + 1));
  const oldest = newest - span + 1;
  const { at } = linearScale(oldest, newest, FRAME.left, FRAME.right);
  const minutesPerMark = span > MARKS_MAX * (MILLIS_PER_MINUTE / slotMillis) ? MINUTES_PER_MARK : 1;
  const step = (minutesPerMark * MILLIS_PER_MINUTE) / slotMillis;
  const ticks = Array.from({ length: Math.floor((span - 1) / step) + 1 }, (_, i) => newest - i * step);
  const text = (slot: number) =>
    slot === newest ? "now" : `−${((newest - slot) * slotMillis) / MILLIS_PER_MINUTE} min`;
  return { scale: { at, ticks }, text, grid: false, oldest, newest };
}

function drawing(
  { title, text, lines, atLeast }: Chart,
  { slots, cursor }: PageState,
  { slotMillis }: TrafficCard,
  axis: ReturnType<typeof timeAxis>,
  actions: Pick<PageActions, "moveCursor">,
): Markup {
  const series = lines.map(({ name, style, of }) => ({ name, style, points: pointsOf(slots, of) }));
  const highest = Math.max(
    atLeast,
    ...series.flatMap(({ points }) => points.map(([, y]) => (Number.isNaN(y) ? 0 : y))),
  );
  const at = cursor ?? slots.at(-2)?.slot ?? axis.newest;
  const shown = slots.find(({ slot }) => slot === at);
  const values = lines.map(({ name, of }) => `${name} ${shown === undefined ? "–" : text(of(shown))}`);
  const when = cursor === undefined ? "" : `${clock(at * slotMillis)} UTC: `;
  const chart = lineChart({
    label: `${title} over time`,
    frame: FRAME,
    x: axis,
    y: {
      scale: linearScale(0, highest, FRAME.bottom, FRAME.top, 3),
      text: (value) => tickText(value, text),
      grid: true,
    },
    series,
    ...(cursor !== undefined && { cursor }),
  });
  const legend = element(
    "span",
    { class: "legend" },
    when === "" ? undefined : element("b", {}, when),
    keys(lines, values),
  );
  return figure(
    title,
    legend,
    element("div", { ...sliderOf(title, at, axis, `${when}${values.join(", ")}`), ...moves(at, axis, actions) }, chart),
  );
}

/** Marks are round numbers, and 0 is 0 in any unit. */
function tickText(value: number, text: Chart["text"]): string {
  return value === 0 ? "0" : text(value).replace(/\.0+ /, " ");
}

function keys(lines: readonly Line[], values: readonly string[]): MarkupContent[] {
  return lines.map(({ style }, i) =>
    element("span", { class: "value" }, element("i", { class: `dot ${style}` }), values[i]),
  );
}

/** A slot without a request between two that had some is a gap in times, and no request in counts. */
function pointsOf(slots: readonly TrafficSlot[], of: Line["of"]): (readonly [number, number])[] {
  return slots.slice(0, -1).map((slot) => [slot.slot, of(slot)] as const);
}

interface Axis {
  readonly oldest: number;
  readonly newest: number;
}

function sliderOf(title: string, at: number, { oldest, newest }: Axis, text: string) {
  return {
    class: "plot",
    tabindex: 0,
    role: "slider",
    "aria-label": `${title}: moment`,
    "aria-valuemin": oldest,
    "aria-valuemax": newest,
    "aria-valuenow": at,
    "aria-valuetext": text,
  };
}

interface Pointer {
  readonly clientX: number;
  readonly currentTarget: { getBoundingClientRect(): { readonly left: number; readonly width: number } };
}

interface Key {
  readonly key: string;
  preventDefault(): void;
}

const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, PageDown: -12, PageUp: 12 };

function moves(at: number, { oldest, newest }: Axis, { moveCursor }: Pick<PageActions, "moveCursor">) {
  const within = (slot: number) => Math.min(newest - 1, Math.max(oldest, slot));
  return {
    onpointermove: ({ clientX, currentTarget }: Pointer) => {
      const { left, width } = currentTarget.getBoundingClientRect();
      const x = ((clientX - left) / width) * FRAME.width;
      moveCursor(within(Math.round(oldest + ((x - FRAME.left) / (FRAME.right - FRAME.left)) * (newest - oldest))));
    },
    onpointerleave: () => moveCursor(undefined),
    onblur: () => moveCursor(undefined),
    onkeydown: (event: Key) => {
      const step = STEPS[event.key];
      if (step === undefined && event.key !== "Escape") return;
      event.preventDefault();
      moveCursor(step === undefined ? undefined : within(at + step));
    },
  };
}
