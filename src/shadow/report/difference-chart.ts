import { figure } from "#page/part/figure.ts";
import { signedPercent, signedTime } from "#page/part/format.ts";
import { INTERVAL_LEFT, INTERVAL_RIGHT, type IntervalRow, intervalChart } from "#page/part/interval-chart.ts";
import { markupText } from "#page/part/markup-text.ts";
import { linearScale } from "#page/part/scale.ts";
import type { CandidateAnswer, Metric, WhatIfAnswer } from "../question/what-if.ts";
import { type PageData, seriesOf } from "./page-data.ts";

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
  const styles = new Map(seriesOf(data).map(({ name, style }) => [name, style]));
  const note = `the model's own error on the mean: ${signedPercent(error)}`;
  const drawing = intervalChart({
    label: `Difference of ${title} to ${answer.inForce}`,
    scale: linearScale(-reach, reach, INTERVAL_LEFT, INTERVAL_RIGHT, 4),
    tickText: (tick) => signedPercent(tick, reach < 0.05 ? 1 : 0),
    rows: others.map((one) => rowOf(one, metric, base, styles.get(one.name) ?? "s0")),
    ...(error !== 0 && { band: { low: -inBand, high: inBand, note } }),
  });
  return markupText(figure(title, drawing));
}

function rowOf(
  { name, difference, differenceInterval }: CandidateAnswer,
  metric: Metric,
  base: number,
  style: string,
): IntervalRow {
  const { mean, low, high } = difference[metric]!;
  const may = differenceInterval[metric];
  const outer = may && {
    low: may.low / base,
    high: may.high / base,
    note: `on other engines: ${signedTime(may.low)} to ${signedTime(may.high)}`,
  };
  return {
    name,
    style,
    text: `${signedTime(mean)} [${signedTime(low)}, ${signedTime(high)}]`,
    value: mean / base,
    inner: { low: low / base, high: high / base },
    ...(outer && { outer }),
  };
}
