import { COVERAGE } from "../figure/interval.ts";
import { type CoveredFigure, FIGURES } from "../question/uncertainty.ts";
import type { WhatIfAnswer } from "../question/what-if.ts";
import { METRICS } from "./figures-table.ts";
import { escaped, percent } from "#page/part/format.ts";

const WITHIN = percent(COVERAGE, 0);

/** How sure the order is, and whether the intervals held what really happened. */
export function sureness(answer: WhatIfAnswer): string {
  const parts = [ranking(answer), coverage(answer)].filter((part) => part !== "");
  if (parts.length === 0) return "";
  return `<h2>How sure this is</h2><p>${intervalWords(answer)}</p><div class="cards wide">${parts.join("")}</div>`;
}

function intervalWords({ replicas }: WhatIfAnswer): string {
  if (replicas === 0)
    return "No prediction intervals: the error of the engine's step times is not known, or no replicas were asked for.";
  return `The large figure is the estimate. The interval under it holds ${WITHIN} of what may come: ${replicas} replicas of every simulation, on engines drawn from what the calibration left to chance, the same for all candidates. Single slow first tokens are in them as far as the calibration's own trace had some.`;
}

/** Share of draws in which the row's mean E2E is below the column's. */
function ranking({ candidates, ranking: { first, before }, replicas }: WhatIfAnswer): string {
  if (first.length < 2) return "";
  const names = candidates.slice(0, first.length).map(({ name }) => escaped(name));
  const heads = names.map((name) => `<th>${name}</th>`).join("");
  const rows = names.map((name, a) => {
    const cells = names.map((_, b) => (a === b ? "<td></td>" : `<td>${percent(before[a]![b]!, 0)}</td>`)).join("");
    return `<tr><th>${name}</th><td>${percent(first[a]!, 0)}</td>${cells}</tr>`;
  });
  const over = replicas === 0 ? "requests resampled" : "replicas with requests resampled";
  return `<figure class="card"><figcaption>How often the row has the lower mean E2E than the column, over ${over}</figcaption>
<div class="scroll" tabindex="0"><table><thead><tr><td></td><th>first</th>${heads}</tr></thead><tbody>${rows.join("")}</tbody></table></div></figure>`;
}

function coverage({ coverage: covered, inForce }: WhatIfAnswer): string {
  if (covered === undefined) return "";
  const rows = METRICS.flatMap(([metric, name]) => {
    const one = covered[metric];
    return one === undefined ? [] : [`<tr><th>${name}</th>${FIGURES.map((figure) => cell(one[figure])).join("")}</tr>`];
  });
  return `<figure class="card"><figcaption>${escaped(inForce)}: observed over predicted, and the ${WITHIN} interval that it was to lie in</figcaption>
<div class="scroll" tabindex="0"><table><thead><tr><td></td>${FIGURES.map((figure) => `<th>${figure}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table></div></figure>`;
}

function cell({ observed, low, high, inside }: CoveredFigure): string {
  const verdict = inside ? "good" : "bad";
  return `<td><span class="${verdict}">${percent(observed)} ${inside ? "inside" : "outside"}</span><small>${percent(low)} to ${percent(high)}</small></td>`;
}
