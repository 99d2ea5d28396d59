import type { DecidedRequest, Divergence } from "./divergence.ts";
import { escaped, percent, signedTime, time } from "#page/part/format.ts";
import type { PageData } from "./page-data.ts";

/** Rows of a decision; of a larger fleet the chosen endpoint and the best others. */
const ROWS_MAX = 6;

/** Requests on which profiles part, both decisions side by side with their outcomes. */
export function decisionExamples({ divergences, promptTokens }: PageData): string {
  return divergences
    .map(({ request, base, other }: Divergence) => {
      const gain = other.e2eMicros - base.e2eMicros;
      return `<article class="card"><h3>Request ${request}, ${promptTokens[request]?.toFixed(0) ?? "?"} prompt tokens:
<span class="${gain < 0 ? "good" : "bad"}">${signedTime(gain)}</span> E2E under ${escaped(other.profile)}</h3>
<div class="pair">${side(base)}${side(other)}</div></article>`;
    })
    .join("");
}

function side({ profile, decision, ttftMicros, e2eMicros, cachedTokens }: DecidedRequest): string {
  const { candidates, scorers, totals, values } = decision.breakdown;
  const chosen = decision.kind === "routed" ? decision.endpoint : "";
  const order = candidates
    .map((_, i) => i)
    .sort(
      (a, b) =>
        Number(candidates[b]!.endpoint === chosen) - Number(candidates[a]!.endpoint === chosen) ||
        rank(totals[b]!) - rank(totals[a]!),
    )
    .slice(0, ROWS_MAX);
  const heads = scorers.map(({ name, weight }) => `<th>${escaped(name)}<small>× ${weight.toFixed(2)}</small></th>`);
  const rows = order.map((i) => {
    const row = candidates[i]!;
    const scores = scorers.map((_, s) => `<td>${score(values[s * candidates.length + i]!)}</td>`).join("");
    const total = row.removedBy === "" ? score(totals[i]!) : `removed by ${escaped(row.removedBy)}`;
    return `<tr${row.endpoint === chosen ? ' class="chosen"' : ""}><th>${escaped(row.endpoint)}</th><td>${row.requestsInFlight}</td><td>${row.hitTokens.toFixed(0)}</td><td>${percent(row.kvUtilization, 0)}</td>${scores}<td>${total}</td></tr>`;
  });
  return `<section><h4>${escaped(profile)} → ${escaped(chosen === "" ? "none" : chosen)} <small>${escaped(decision.reason)}</small></h4>
<p>TTFT ${time(ttftMicros)}, E2E ${time(e2eMicros)}, ${Number.isNaN(cachedTokens) ? "–" : cachedTokens.toFixed(0)} tokens from the cache</p>
<div class="scroll" tabindex="0"><table><thead><tr><th>endpoint</th><th>in flight</th><th>hit tokens</th><th>KV used</th>${heads.join("")}<th>total</th></tr></thead><tbody>${rows.join("")}</tbody></table></div></section>`;
}

function rank(total: number): number {
  return Number.isNaN(total) ? -Infinity : total;
}

function score(value: number): string {
  if (Number.isNaN(value)) return "–";
  return value < 0 ? "abstains" : value.toFixed(3);
}
