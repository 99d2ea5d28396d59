import { type Cell, type Column, COLUMNS } from "./cell.ts";
import { misses, type Score, type Standing, standings, unseenStandings } from "./score.ts";

const HEADS: Readonly<Record<Column, string>> = {
  e2eMean: "E2E s mean",
  ttftMean: "TTFT ms mean",
  e2eP99: "E2E s p99",
  ttftP99: "TTFT ms p99",
};

/** Candidates in order of their score, with the case that each does worst on, column by column. */
export function scoreTable(ranked: readonly (readonly [string, Score])[]): string {
  const rows = ranked.map(([name, { worst, mean, worstOf }]) => [
    name,
    percent(worst),
    percent(mean),
    ...worstOf.map(({ behind, name: where }) => `${percent(behind)} ${where}`),
  ]);
  return table(["candidate", "worst %", "mean %", ...COLUMNS.map((column) => HEADS[column])], rows);
}

/** A policy beside the best of all others in each column of each case. */
export function caseTable(cells: readonly Cell[], policy: string, others: readonly string[]): string {
  const all = standings(cells, policy, others);
  const names = [...new Set(all.map(({ name }) => name))];
  const rows = names.map((name) => {
    const here = cells.filter((cell) => cell.name === name);
    return [name, ...all.filter((one) => one.name === name).map((one) => columnText(one, here, policy))];
  });
  const unseen = unseenStandings(cells, policy, others);
  return [
    table([policy, ...COLUMNS.map((column) => HEADS[column])], rows),
    `\nlevel with the best or ahead: ${levels(all)}`,
    ...(unseen.length === 0 ? [] : [`\nbeside whom the other seeds name as the best: ${levels(unseen)}`]),
  ].join("\n");
}

function levels(all: readonly Standing[]): string {
  const counts = COLUMNS.map((column) => {
    const of = all.filter((one) => one.column === column);
    return `${HEADS[column]} ${of.filter((one) => !misses(one)).length} of ${of.length}`;
  });
  return counts.join(", ");
}

/**
 * Ours, half the range over the seeds, and % behind the best of the others; bold where ours is level or ahead, else with
 * who is the best.
 */
function columnText(one: Standing, here: readonly Cell[], policy: string): string {
  const values = here.filter((cell) => cell.policy === policy).map((cell) => cell[one.column]);
  const half = (Math.max(...values) - Math.min(...values)) / 2;
  const ours = `${shown(one.column, one.value)}±${shown(one.column, half)}`;
  const behind = `${one.behind < 0 ? "" : "+"}${percent(one.behind)}`;
  return misses(one) ? `${ours} ${behind} ${one.bestPolicy}` : `**${ours}** ${behind}`;
}

function percent(share: number): string {
  return (100 * share).toFixed(1);
}

function shown(column: Column, value: number): string {
  return column.startsWith("e2e") ? (value / 1000).toFixed(2) : value.toFixed(0);
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), `|${head.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}
