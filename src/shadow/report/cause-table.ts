import type { WhatIfAnswer } from "../question/what-if.ts";
import { causeWords } from "./cause-words.ts";
import { escaped, percent, signedTime } from "#page/part/format.ts";

/** Groups of requests that are listed for each candidate. */
const CAUSES_SHOWN = 6;

/** Why candidates differ: hot endpoints and lost prefixes, by their part of the mean difference. */
export function causeTable({ candidates, inForce, requests }: WhatIfAnswer): string {
  const rows = candidates.flatMap(({ name, causes, busiestShare }) =>
    causes.slice(0, CAUSES_SHOWN).map((cause, i, shown) => {
      const busiest = `<small>${percent(busiestShare)} to the busiest endpoint</small>`;
      const head = i === 0 ? `<th rowspan="${shown.length}">${escaped(name)}${busiest}</th>` : "";
      const share = `<td class="${cause.shareMicros < 0 ? "good" : "bad"}">${signedTime(cause.shareMicros)}</td>`;
      return `<tr>${head}<td class="text">${causeWords(cause)}</td><td>${percent(cause.requests / requests)}</td><td>${signedTime(cause.ttftChangeMicros)}</td><td>${signedTime(cause.e2eChangeMicros)}</td>${share}</tr>`;
    }),
  );
  if (rows.length === 0) return "";
  return `<h2>Why they differ</h2>
<p>Requests by what became of their endpoint, their cached prefix and the queue that they met, against ${escaped(inForce)}. The last column is their part of the mean E2E difference.</p>
<div class="card scroll" tabindex="0"><table><thead><tr><th>profile</th><th class="text">outcome</th><th>requests</th><th>TTFT each</th><th>E2E each</th><th>of the mean</th></tr></thead><tbody>${rows.join("")}</tbody></table></div>`;
}
