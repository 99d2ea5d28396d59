import { dataTable, type TableRow } from "../part/data-table.ts";
import { age, compact, count, percent } from "../part/format.ts";
import { element, type Markup } from "../part/markup.ts";
import { endpointName } from "./endpoint-name.ts";
import type { CandidateLine, DecisionDetail } from "./overview.ts";

/** Of a larger fleet the chosen endpoint and the best others. */
const ROWS_MAX = 12;

/** What every candidate of one decision scored, the chosen one first. */
export function scoreTable({ endpoint, scorers, candidates }: DecisionDetail): Markup {
  const order = [...candidates].sort(
    (a, b) => Number(b.endpoint === endpoint) - Number(a.endpoint === endpoint) || (b.total ?? -1) - (a.total ?? -1),
  );
  const rest = order.length - ROWS_MAX;
  const table = dataTable({
    caption: "Scores of the candidates, the chosen one first",
    columns: [
      { name: "Candidate", style: "text name" },
      { name: "Total" },
      ...scorers.map(({ name, weight }) => ({ name: `${name} × ${weight.toFixed(2)}` })),
      { name: "Hit tokens" },
      { name: "Load" },
      { name: "Prompt tokens queued" },
      { name: "KV in use" },
      { name: "Signals", style: "text" },
    ],
    rows: order.slice(0, ROWS_MAX).map((one) => rowOf(one, scorers, one.endpoint === endpoint)),
  });
  return element(
    "div",
    {},
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Scores of the candidates" }, table),
    rest > 0 && element("p", {}, `${rest} more candidates scored less or were removed.`),
  );
}

function rowOf(one: CandidateLine, scorers: DecisionDetail["scorers"], isChosen: boolean): TableRow {
  const total = one.removedBy === "" ? score(one.total) : `removed by ${one.removedBy}`;
  const row = {
    key: one.endpoint,
    cells: [
      endpointName(one.endpoint),
      total,
      ...scorers.map(({ name }) => score(one.scores[name] ?? null)),
      compact(one.hitTokens),
      count(one.effectiveLoad),
      compact(one.prefillTokensQueued),
      percent(one.kvUtilization, 0),
      `${one.freshness}, ${age(one.loadAgeMillis)}`,
    ],
  };
  return isChosen ? { ...row, style: "chosen" } : row;
}

/** −1 is an abstention. */
function score(value: number | null): string {
  if (value === null) return "–";
  return value < 0 ? "abstains" : value.toFixed(3);
}
