import type { CandidateAnswer, Metric, WhatIfAnswer } from "../question/what-if.ts";
import { escaped, point, signedPercent, signedTime } from "./markup.ts";
import type { PageData } from "./page-data.ts";
import { seriesOf } from "./page-data.ts";
import { linearScale } from "./scale.ts";

const WIDTH = 460;
const ROW = 34;
const LEFT = 12;
const RIGHT = WIDTH - 12;

/**
 * Mean difference to the profile in force per candidate as a share of the in-force mean: thick its 95 % interval over
 * requests, thin its prediction interval. The band is the model's own error on what really happened: a difference inside
 * it may be nothing.
 */
export function differenceChart(answer: WhatIfAnswer, data: PageData, metric: Metric, title: string): string {
  const base = answer.candidates.find(({ name }) => name === answer.inForce)?.predicted[metric]?.mean;
  // Another fleet or rate is so far away that nothing else could be seen beside it.
  const others = answer.candidates.filter(
    ({ name, scenario, difference }) => name !== answer.inForce && scenario === "" && difference[metric],
  );
  if (base === undefined || others.length === 0) return "";
  const error = Math.abs(answer.modelError?.[metric]?.meanRelative ?? 0);
  const ends = others.flatMap(({ difference, differenceInterval }) =>
    [difference[metric]!, differenceInterval[metric] ?? { low: 0, high: 0 }].flatMap(({ low, high }) => [
      low / base,
      high / base,
    ]),
  );
  const reach = 1.15 * Math.max(0.005, ...ends.map((end) => Math.abs(end)));
  const inBand = Math.min(error, reach);
  const x = linearScale(-reach, reach, LEFT, RIGHT, 4);
  const bottom = others.length * ROW + 8;
  const styles = new Map(seriesOf(data).map(({ name, style }) => [name, style]));
  const band =
    error === 0
      ? ""
      : `<rect class="band" x="${point(x.at(-inBand))}" width="${point(x.at(inBand) - x.at(-inBand))}" y="4" height="${bottom - 4}"><title>the model's own error on the mean: ${signedPercent(error)}</title></rect>`;
  const marks = x.ticks.map(
    (tick) =>
      `<line class="${Math.abs(tick) < 1e-9 ? "zero" : "grid"}" x1="${point(x.at(tick))}" x2="${point(x.at(tick))}" y1="4" y2="${bottom}"/><text class="tick mid" x="${point(x.at(tick))}" y="${bottom + 16}">${Math.abs(tick) < 1e-9 ? "0" : signedPercent(tick, reach < 0.05 ? 1 : 0)}</text>`,
  );
  const rows = others.map((one, i) => row(one, metric, base, i * ROW + 8, x.at, styles.get(one.name) ?? "s0"));
  return `<figure class="card"><figcaption>${title}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${bottom + 24}" role="img" aria-label="Difference of ${title} to ${escaped(answer.inForce)}">${band}${marks.join("")}${rows.join("")}</svg></figure>`;
}

function row(
  { name, difference, differenceInterval }: CandidateAnswer,
  metric: Metric,
  base: number,
  top: number,
  x: (value: number) => number,
  style: string,
): string {
  const { mean, low, high } = difference[metric]!;
  const y = top + 21;
  const may = differenceInterval[metric];
  const thin =
    may &&
    `<line class="line thin ${style}" x1="${point(x(may.low / base))}" x2="${point(x(may.high / base))}" y1="${y}" y2="${y}"><title>on other engines: ${signedTime(may.low)} to ${signedTime(may.high)}</title></line>`;
  const text = `${signedTime(mean)} [${signedTime(low)}, ${signedTime(high)}]`;
  return `<text class="label" x="${LEFT}" y="${top + 10}">${escaped(name)}</text><text class="label end" x="${RIGHT}" y="${top + 10}">${text}</text>${thin ?? ""}<line class="line thick ${style}" x1="${point(x(low / base))}" x2="${point(x(high / base))}" y1="${y}" y2="${y}"/><circle class="dot ${style}" cx="${point(x(mean / base))}" cy="${y}" r="4.5"><title>${escaped(name)}: ${text}</title></circle>`;
}
