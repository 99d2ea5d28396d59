import type { Distribution } from "#sim/result/distribution.ts";
import type { ScoredChoice, DecisionRegret } from "../job/regret.ts";
import type { WhatIfAnswer } from "../question/what-if.ts";
import { escaped, percent, signedTime, time } from "#page/part/format.ts";

/** Regret by outcome of each candidate, and its worst decisions; nothing where none was asked for. */
export function regretSection({ candidates }: WhatIfAnswer): string {
  const asked = candidates.flatMap(({ name, regret }) => (regret === undefined ? [] : [{ name, regret }]));
  if (asked.length === 0) return "";
  const rows = asked.map(({ name, regret }) => {
    const own = `<td>${percent(regret.better, 0)}</td>${spread(regret.regret)}<td>${signedTime(regret.secondChangeMicros)}</td>`;
    const all = `<td>${percent(regret.betterForAll, 0)}</td>${spread(regret.windowRegret)}<td>${signedTime(regret.secondWindowChangeMicros)}</td>`;
    return `<tr><th>${escaped(name)}</th><td>${regret.decisions}</td>${own}${all}</tr>`;
  });
  const heads = "<th>better existed</th><th>lost, mean</th><th>p90</th><th>max</th><th>second choice</th>";
  const worst = asked.flatMap(({ name, regret }) => regret.worst.slice(0, 1).map((one) => example(name, one)));
  return `<h2>Regret by outcome</h2>
<p>Single counterfactual decisions, all else by the profile, up to 1,000 requests before and 200 after simulated again. Lost is against the best of the alternatives tried, with hindsight; the second choice is the policy's own, without.</p>
<div class="card scroll" tabindex="0"><table><thead><tr><th rowspan="2">profile</th><th rowspan="2">decisions</th><th colspan="5">E2E of the request itself</th><th colspan="5">with all after it, summed</th></tr><tr>${heads}${heads}</tr></thead><tbody>${rows.join("")}</tbody></table></div>
<div class="cards wide below">${worst.join("")}</div>`;
}

function spread(figures: Distribution | undefined): string {
  return [figures?.mean, figures?.p90, figures?.max].map((value) => `<td>${time(value ?? NaN)}</td>`).join("");
}

function example(
  profile: string,
  { request, promptTokens, reason, choices, windowRegretMicros }: DecisionRegret,
): string {
  return `<article class="card"><h3>${escaped(profile)}, request ${request}, ${promptTokens} prompt tokens: <span class="bad">${time(windowRegretMicros)}</span> lost by all</h3>
<p>Decided by ${escaped(reason)}.</p><div class="scroll tight" tabindex="0"><table><thead><tr><th>endpoint</th><th>in flight</th><th>hit tokens</th><th>KV used</th><th>score</th><th>TTFT</th><th>E2E</th><th>all</th></tr></thead><tbody>${choices.map(row).join("")}</tbody></table></div></article>`;
}

function row(choice: ScoredChoice, place: number): string {
  const { endpoint, requestsInFlight, hitTokens, kvUtilization, score, outcome } = choice;
  const came = [time(outcome?.ttftMicros ?? NaN), time(outcome?.e2eMicros ?? NaN)];
  const all = outcome === undefined ? "–" : place === 0 ? "as it was" : signedTime(outcome.windowChangeMicros);
  return `<tr${place === 0 ? ' class="chosen"' : ""}><th>${escaped(endpoint)}</th><td>${requestsInFlight}</td><td>${hitTokens.toFixed(0)}</td><td>${percent(kvUtilization, 0)}</td><td>${score.toFixed(3)}</td><td>${came.join("</td><td>")}</td><td>${all}</td></tr>`;
}
