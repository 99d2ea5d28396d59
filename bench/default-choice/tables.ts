import { type Cell, type Column, COLUMNS } from "./cell.ts";
import { misses, type Standing, standings } from "./score.ts";

const HEADS: Readonly<Record<Column, string>> = {
  e2eMean: "E2E s mean",
  ttftMean: "TTFT ms mean",
  e2eP99: "E2E s p99",
  ttftP99: "TTFT ms p99",
  goodput: "good %",
};

/** Candidates in order of their score, with the number of columns that each misses, all seeds together and each alone. */
export function scoreTable(
  cells: readonly Cell[],
  ranked: readonly (readonly [string, number])[],
  others: readonly string[],
  seeds: readonly number[],
): string {
  const rows = ranked.map(([name, score]) => {
    const all = standings(cells, name, others);
    const byColumn = COLUMNS.map((column) => all.filter((one) => one.column === column && misses(one)).length);
    const alone = seeds.map(
      (seed) =>
        standings(
          cells.filter((cell) => cell.seed === seed),
          name,
          others,
        ).filter((one) => misses(one)).length,
    );
    return [
      name,
      score.toFixed(4),
      `${all.filter((one) => misses(one)).length} of ${all.length}`,
      ...byColumn,
      ...alone,
    ];
  });
  const head = [
    "candidate",
    "score",
    "missed",
    ...COLUMNS.map((column) => HEADS[column]),
    ...seeds.map((seed) => `seed ${seed}`),
  ];
  return table(head, rows);
}

/** A policy beside the best of all others in each column of each case; the spread is over the seeds. */
export function heldOutTable(cells: readonly Cell[], policy: string, others: readonly string[]): string {
  const all = standings(cells, policy, others);
  const names = [...new Set(all.map(({ name }) => name))];
  const rows = names.map((name) => {
    const here = cells.filter((cell) => cell.name === name);
    return [name, ...all.filter((one) => one.name === name).map((one) => columnText(one, here, policy))];
  });
  const missed = all.filter((one) => misses(one));
  const listed = missed.map(({ name, column, behind }) => `${name}: ${HEADS[column]} by ${(100 * behind).toFixed(1)}`);
  const counts = COLUMNS.map((column) => {
    const of = all.filter((one) => one.column === column);
    return `${HEADS[column]} ${of.filter((one) => !misses(one)).length} of ${of.length}`;
  });
  return [
    table(["held out", ...COLUMNS.map((column) => HEADS[column])], rows),
    `\nlevel with the best or ahead: ${counts.join(", ")}`,
    `missed (% behind, of goodput points): ${listed.join("; ") || "none"}`,
  ].join("\n");
}

/**
 * Ours, its least and most over the seeds / the best of the others, and whose that is; bold where ours is level or
 * ahead.
 */
function columnText(one: Standing, here: readonly Cell[], policy: string): string {
  const values = here.filter((cell) => cell.policy === policy).map((cell) => cell[one.column]);
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => shown(one.column, value));
  const ours = misses(one) ? shown(one.column, one.value) : `**${shown(one.column, one.value)}**`;
  return `${ours} (${least}-${most}) / ${shown(one.column, one.best)} ${one.bestPolicy}`;
}

function shown(column: Column, value: number): string {
  if (column === "goodput") return (100 * value).toFixed(1);
  return column.startsWith("e2e") ? (value / 1000).toFixed(2) : value.toFixed(0);
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), `|${head.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}
