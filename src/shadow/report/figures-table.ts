import { figuresOf } from "../figure/figures.ts";
import { FIGURES, type FigureInterval } from "../question/uncertainty.ts";
import type { CandidateAnswer, Metric, WhatIfAnswer } from "../question/what-if.ts";
import { escaped, millis, percent, signedPercent } from "#page/part/format.ts";
import { OBSERVED, type PageData, type Series, seriesOf } from "./page-data.ts";
import { seriesValues } from "./series-values.ts";

export const METRICS: readonly (readonly [Metric, string])[] = [
  ["ttftMicros", "TTFT"],
  ["tpotMicros", "TPOT"],
  ["e2eMicros", "E2E"],
];

/** Every prediction with the model's error in the column beside it. */
export function figuresTable(answer: WhatIfAnswer, data: PageData): string {
  const styles = new Map(seriesOf(data).map(({ name, style }): [string, Series["style"]] => [name, style]));
  const heads = METRICS.map(([metric, name]) => `<th colspan="3">${name}, ms${errorNote(answer, metric)}</th>`).join(
    "",
  );
  const units = METRICS.map(() => "<th>mean</th><th>p50</th><th>p99</th>").join("");
  const rows = answer.candidates.map((one) => candidateRow(one, answer, styles.get(one.name) ?? "s0"));
  return `<div class="scroll" tabindex="0"><table class="figures">
<thead><tr><th rowspan="2">profile</th>${heads}<th rowspan="2">cache<br>hits</th><th rowspan="2">imba&shy;lance</th><th rowspan="2">same<br>endpoint</th><th rowspan="2">done</th></tr><tr>${units}</tr></thead>
<tbody>${observedRow(answer, data)}${rows.join("")}</tbody></table></div>`;
}

function errorNote({ modelError }: WhatIfAnswer, metric: Metric): string {
  const error = modelError?.[metric];
  if (error === undefined) return "";
  return `<small>model error ${signedPercent(error.meanRelative)}, p99 ${signedPercent(error.p99Relative)}</small>`;
}

function candidateRow(one: CandidateAnswer, { inForce, requests }: WhatIfAnswer, style: string): string {
  const cells = METRICS.map(([metric]) => {
    const figures = one.predicted[metric];
    if (figures === undefined) return "<td>–</td><td>–</td><td>–</td>";
    return FIGURES.map((figure) => `<td>${millis(figures[figure])}${range(one.intervals[metric]?.[figure])}</td>`).join(
      "",
    );
  }).join("");
  const mark = one.name === inForce ? ` <em>in force</em>` : "";
  return `<tr data-series="${escaped(one.name)}"><th><i class="dot ${style}"></i>${escaped(one.name)}${mark}</th>${cells}<td>${percent(one.hitRatio)}</td><td>${one.imbalance.toFixed(2)}</td><td>${one.name === inForce ? "" : percent(one.agreement ?? NaN)}</td><td>${one.completed === requests ? "all" : `${one.completed} of ${requests}`}</td></tr>`;
}

/** The interval under its estimate. */
function range(interval: FigureInterval | undefined): string {
  return interval === undefined ? "" : `<small>${millis(interval.low)}–${millis(interval.high)}</small>`;
}

function observedRow({ modelError }: WhatIfAnswer, data: PageData): string {
  if (modelError === undefined || data.observed === undefined) return "";
  const cells = METRICS.map(([metric]) => {
    const figures = figuresOf(seriesValues(data, OBSERVED, metric));
    return [figures?.mean, figures?.p50, figures?.p99].map((value) => `<td>${millis(value ?? NaN)}</td>`).join("");
  }).join("");
  const hits = observedHitRatio(data);
  return `<tr class="live-row" data-series="${OBSERVED}"><th><i class="dot live"></i>observed</th>${cells}<td>${percent(hits)}</td><td></td><td></td><td></td></tr>`;
}

/** Over requests whose engine reported how much it had cached; NaN where none did. */
export function observedHitRatio({ observed, promptTokens }: PageData): number {
  let cached = 0;
  let prompt = 0;
  observed?.forEach((one, i) => {
    if (Number.isNaN(one.cachedTokens)) return;
    cached += one.cachedTokens;
    prompt += promptTokens[i]!;
  });
  return prompt === 0 ? NaN : cached / prompt;
}
