import { createHash } from "node:crypto";
import type { WhatIfAnswer } from "../question/what-if.ts";
import { causeTable } from "./cause-table.ts";
import { cdfChart } from "./cdf-chart.ts";
import { decisionExamples } from "./decision-examples.ts";
import { differenceChart } from "./difference-chart.ts";
import { figuresTable, METRICS } from "./figures-table.ts";
import { hitChart } from "./hit-chart.ts";
import { loadCharts, loadLegend } from "./load-chart.ts";
import { escaped } from "#page/part/format.ts";
import { areMeansApart, MEANS_APART } from "./means-apart.ts";
import { endpointsOf, type PageData, seriesOf } from "./page-data.ts";
import { PAGE_SCRIPT } from "./page-script.ts";
import { PAGE_STYLE } from "#page/part/page-style.ts";
import { regretSection } from "./regret-section.ts";
import { sureness } from "./sureness.ts";
import { verdict } from "./verdict.ts";

/**
 * The answer as one HTML document. It loads nothing, and its own policy forbids all but its one style and its one script,
 * by their hashes.
 */
export function whatIfPage(answer: WhatIfAnswer, data: PageData): string {
  const policy = `default-src 'none'; style-src ${hashOf(PAGE_STYLE)}; script-src ${hashOf(PAGE_SCRIPT)}; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>What if: ${escaped(data.trace)}</title>
<style>${PAGE_STYLE}</style></head>
<body><main>
<h1>What if ${escaped(data.trace)} had been routed otherwise</h1>
<p class="lead">${escaped(verdict(answer, data.isEngineGuess ? data.engine : undefined))}</p>
<p>${answer.requests} requests, ${endpointsOf(data).names.length} endpoints, engine ${escaped(data.engine)}; in force: ${escaped(answer.inForce)}.</p>
${notes(data)}
<h2>Predictions</h2>
<p>Simulated, best mean E2E first. ${errorWords(answer)}</p>
<div class="card">${figuresTable(answer, data)}</div>
${scenarioWords(answer)}
${uncomparedWords(answer)}
${sureness(answer)}
${differences(answer, data)}
${causeTable(answer)}
<h2>Distributions</h2>
<p>Share of requests at or below a time. ${data.observed === undefined ? "" : "The dashed line is what really happened."}</p>
<div class="keys">${keys(data)}</div>
<div class="cards wide">${METRICS.map(([metric, name]) => cdfChart(data, metric, name)).join("")}${hitChart(answer, data)}</div>
<h2>Requests in flight at each endpoint</h2>
<div class="keys">${loadLegend(data)}</div>
<div class="cards wide">${loadCharts(data)}</div>
${examples(data)}
${regretSection(answer)}
</main><script>${PAGE_SCRIPT}</script></body></html>
`;
}

function hashOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

function notes({ notes }: PageData): string {
  return notes.length === 0 ? "" : `<ul>${notes.map((note) => `<li>${escaped(note)}</li>`).join("")}</ul>`;
}

function errorWords({ modelError, inForce }: WhatIfAnswer): string {
  if (modelError === undefined)
    return "The model's error is not known, since this traffic was not run as simulated here.";
  return `The column heads show the model's error: ${escaped(inForce)} simulated against what really happened.`;
}

function scenarioWords({ candidates }: WhatIfAnswer): string {
  const scenarios = [...new Set(candidates.flatMap(({ scenario }) => (scenario === "" ? [] : [escaped(scenario)])))];
  if (scenarios.length === 0) return "";
  return `<p>No model error covers ${scenarios.join(", ")}: nothing like it was observed.</p>`;
}

function uncomparedWords({ uncompared }: WhatIfAnswer): string {
  const items = Object.entries(uncompared).map(([reason, count]) => `<li>${count} ${escaped(reason)}</li>`);
  return items.length === 0
    ? ""
    : `<p class="below">Simulated, but not in the model's error:</p><ul>${items.join("")}</ul>`;
}

function differences(answer: WhatIfAnswer, data: PageData): string {
  if (answer.ranking.first.length < 2) return "";
  const charts = METRICS.map(([metric, name]) => differenceChart(answer, data, metric, name)).join("");
  const thin = answer.replicas === 0 ? "" : "; thin: 90 % prediction interval on other engines";
  const band = answer.modelError === undefined ? "" : " The band is the model's own error on the mean.";
  return `<h2>Differences to ${escaped(answer.inForce)}</h2>
<p>Mean over the same requests, both simulated; left is faster. Thick: 95 % interval over requests${thin}.${band}</p>
${areMeansApart(answer) ? `<p class="below">${MEANS_APART}</p>` : ""}
<div class="cards">${charts}</div>`;
}

function keys(data: PageData): string {
  return seriesOf(data)
    .map(
      ({ name, style }) =>
        `<button class="key" type="button" aria-pressed="true" data-key="${escaped(name)}"><i class="dot ${style}"></i>${escaped(name)}</button>`,
    )
    .join("");
}

function examples(data: PageData): string {
  if (data.divergences.length === 0) return "";
  return `<h2>Where profiles part</h2>
<p>Of each candidate the request that gains and the one that loses most, with both decisions as they were made.</p>
${decisionExamples(data)}`;
}
