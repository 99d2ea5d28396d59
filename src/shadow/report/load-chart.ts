import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { figure } from "#page/part/figure.ts";
import { escaped } from "#page/part/format.ts";
import { type Frame, lineChart } from "#page/part/line-chart.ts";
import { markupText } from "#page/part/markup-text.ts";
import { endpointsOf, OBSERVED, type PageData, seriesOf } from "./page-data.ts";
import { linearScale } from "#page/part/scale.ts";

const WIDTH = 460;
const HEIGHT = 150;
const FRAME: Frame = { width: WIDTH, height: HEIGHT, left: 34, right: WIDTH - 10, top: 8, bottom: HEIGHT - 26 };
const BINS = 180;
/** Endpoints drawn one by one; of a larger fleet the busiest, the median and the idlest at each moment. */
const LINES_MAX = 8;
const SECONDS = { name: "s", micros: MICROS_PER_SECOND } as const;
/** Units of the time axis, the largest first; one is taken where the span has a few of it. */
const UNITS = [
  { name: "h", micros: 3_600 * MICROS_PER_SECOND },
  { name: "min", micros: 60 * MICROS_PER_SECOND },
  SECONDS,
];
const UNITS_SHOWN_MIN = 5;

/** Mean requests in flight per endpoint over time: one drawing a profile, all on the same axes. */
export function loadCharts(data: PageData): string {
  const grids = seriesOf(data).map(({ name }) => ({ name, bins: binsOf(data, name) }));
  const spanMicros = Math.max(1, ...grids.map(({ bins }) => bins.spanMicros));
  const filled = grids.map(({ name, bins }) => ({ name, lines: bins.fill(spanMicros) }));
  const highest = Math.max(1, ...filled.flatMap(({ lines }) => lines.map((line) => Math.max(...line))));
  return filled.map(({ name, lines }) => chart(name, drawn(lines), data, spanMicros, highest)).join("");
}

interface Line {
  readonly name: string;
  readonly values: Float64Array;
}

function drawn(lines: readonly Float64Array[]): { readonly lines: readonly Line[]; readonly isBand: boolean } {
  if (lines.length <= LINES_MAX)
    return { lines: lines.map((values, i) => ({ name: String(i), values })), isBand: false };
  const sorted = Array.from({ length: BINS }, (_, bin) => lines.map((line) => line[bin]!).sort((a, b) => a - b));
  const at = (share: number) => Float64Array.from(sorted, (one) => one[Math.floor(share * (one.length - 1))]!);
  return {
    isBand: true,
    lines: [
      { name: "busiest", values: at(1) },
      { name: "median", values: at(0.5) },
      { name: "idlest", values: at(0) },
    ],
  };
}

function chart(
  name: string,
  { lines, isBand }: ReturnType<typeof drawn>,
  data: PageData,
  spanMicros: number,
  highest: number,
): string {
  const { names } = endpointsOf(data);
  const unit = UNITS.find(({ micros }) => spanMicros >= UNITS_SHOWN_MIN * micros) ?? SECONDS;
  const span = spanMicros / unit.micros;
  const drawing = lineChart({
    label: `Requests in flight per endpoint, ${name}`,
    frame: FRAME,
    x: {
      scale: linearScale(0, span, FRAME.left, FRAME.right),
      text: (tick) => `${Number(tick.toPrecision(3))} ${unit.name}`,
      grid: false,
    },
    y: {
      scale: linearScale(0, highest, FRAME.bottom, FRAME.top, 3),
      text: (tick) => String(Math.round(tick * 10) / 10),
      grid: true,
    },
    series: lines.map((line, i) => ({
      name: line.name,
      style: `thin e${i % LINES_MAX}`,
      points: Array.from(line.values, (value, bin): readonly [number, number] => [((bin + 0.5) / BINS) * span, value]),
      note: isBand ? line.name : (names[i] ?? line.name),
    })),
  });
  return markupText(figure(name === OBSERVED ? "observed" : `${name}, simulated`, drawing));
}

/** Names of the lines, as the drawings have them. */
export function loadLegend(data: PageData): string {
  const { names } = endpointsOf(data);
  const labels = names.length > LINES_MAX ? ["busiest endpoint", "median", "idlest"] : names;
  return labels
    .map((name, i) => `<span class="key"><i class="dot e${i % LINES_MAX}"></i>${escaped(name)}</span>`)
    .join("");
}

interface Bins {
  readonly spanMicros: number;
  /** Mean requests in flight per endpoint and bin of a span. */
  readonly fill: (spanMicros: number) => Float64Array[];
}

function binsOf(data: PageData, name: string): Bins {
  const { starts, lengths, endpoints } = stays(data, name);
  let spanMicros = 0;
  for (let i = 0; i < starts.length; i++)
    if (starts[i]! + lengths[i]! > spanMicros) spanMicros = starts[i]! + lengths[i]!;
  const fill = (span: number) => {
    const width = span / BINS;
    const lines = endpointsOf(data).names.map(() => new Float64Array(BINS));
    for (let i = 0; i < starts.length; i++) {
      const line = lines[endpoints[i]!];
      const [from, to] = [starts[i]!, starts[i]! + lengths[i]!];
      if (line === undefined || Number.isNaN(to)) continue;
      for (let bin = Math.floor(from / width); bin < BINS && bin * width < to; bin++)
        line[bin]! += Math.max(0, Math.min(to, (bin + 1) * width) - Math.max(from, bin * width)) / width;
    }
    return lines;
  };
  return { spanMicros, fill };
}

/** When each request came, how long it stayed and where, by the endpoints' names. */
function stays(data: PageData, name: string) {
  const { names, of } = endpointsOf(data);
  if (name === OBSERVED && data.observed !== undefined) {
    const numbers = new Map(names.map((endpoint, i) => [endpoint, i]));
    return {
      starts: data.observedArrivalMicros,
      lengths: Float64Array.from(data.observed, ({ e2eMicros }) => e2eMicros),
      endpoints: Int32Array.from(data.observed, ({ endpoint }) => numbers.get(endpoint) ?? -1),
    };
  }
  const outcome = data.outcomes.find((one) => one.name === name);
  const none = new Float64Array(0);
  return {
    starts: outcome?.arrivalMicros ?? none,
    lengths: outcome?.e2eMicros ?? none,
    endpoints: (outcome?.endpoint ?? new Int32Array(0)).map((number) => of[number] ?? -1),
  };
}
