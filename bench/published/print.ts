import { type PublishedRun, SOURCES } from "./runs.ts";

/** A run, and what a formula makes of it. */
export interface Judged {
  readonly run: PublishedRun;
  readonly ttftMillis: number;
  readonly tpotMillis: number;
}

const tpotOff = ({ run, tpotMillis }: Judged) => tpotMillis / run.tpotMillis - 1;
const ttftOff = ({ run, ttftMillis }: Judged) =>
  run.ttftMillis === undefined || run.saturated ? NaN : ttftMillis / run.ttftMillis - 1;

/** A row for each kind and number of boards, then printSummary. */
export function printGroups(rows: readonly Judged[]): void {
  console.log("\n| boards | runs | models: mean error of TPOT and TTFT in % |\n|---|---:|---|");
  const boards = [...Map.groupBy(rows, ({ run }) => boardsOf(run))].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, some] of boards) {
    const models = [...Map.groupBy(some, ({ run }) => run.model)].map(([model, own]) => {
      const errors = [tpotOff, ttftOff].map((off) => meanPercent(own.map(off).filter((value) => !Number.isNaN(value))));
      return `${model} ${errors.join("/")}`;
    });
    console.log(`| ${name} | ${some.length} | ${models.join(", ")} |`);
  }
  printSummary(rows);
}

function boardsOf({ board, tp, eager }: PublishedRun): string {
  return `${board} x${tp}${eager ? " eager" : ""}`;
}

function meanPercent(errors: readonly number[]): string {
  if (errors.length === 0) return "-";
  const mean = Math.round((100 * errors.reduce((sum, value) => sum + value, 0)) / errors.length);
  return `${mean > 0 ? "+" : ""}${mean}`;
}

/** Every run with its source. */
export function printRuns(rows: readonly Judged[]): void {
  console.log(
    "\n| boards | model | load | TTFT ms | predicted | TPOT ms | predicted | off | source |\n|---|---|---|---:|---:|---:|---:|---:|---|",
  );
  for (const row of rows) {
    const { run, ttftMillis, tpotMillis } = row;
    const published = run.ttftMillis === undefined ? "" : `${run.ttftMillis.toFixed(1)}${run.saturated ? " *" : ""}`;
    const times = [
      published,
      ttftMillis.toFixed(1),
      run.tpotMillis.toFixed(2),
      tpotMillis.toFixed(2),
      percent(tpotOff(row)),
    ];
    console.log(`| ${[boardsOf(run), run.model, loadText(run), ...times, `${run.source} ${run.run}`].join(" | ")} |`);
  }
  console.log("\n* requests waited for others: not counted");
  printSummary(rows);
  for (const [name, where] of Object.entries(SOURCES)) console.log(`${name}: ${where}`);
}

/** Median, ninth tenth and how many are far out. */
export function printSummary(rows: readonly Judged[]): void {
  console.log();
  for (const [name, off] of [
    ["TPOT", tpotOff],
    ["TTFT", ttftOff],
  ] as const) {
    const errors = rows
      .map((row) => Math.abs(off(row)))
      .filter((value) => !Number.isNaN(value))
      .sort((a, b) => a - b);
    const beyond = errors.filter((value) => value > 0.25).length;
    console.log(
      `${name}: off by ${share(errors[errors.length >> 1]!)} in the median of ${errors.length} runs, 9 of 10 within ` +
        `${share(errors[Math.floor(0.9 * errors.length)]!)}, ${beyond} beyond 25 %`,
    );
  }
}

/** What predictions from a config alone are to keep to: beyond, a row is named. */
const GOALS = [
  ["TPOT", 0.25, tpotOff],
  ["TTFT", 0.2, ttftOff],
] as const;

/** Every run that is further off than that. */
export function printOutside(rows: readonly Judged[]): void {
  for (const [name, goal, off] of GOALS) {
    const outside = rows.filter((row) => Math.abs(off(row)) > goal);
    const each = outside.map(
      (row) => `${row.run.model} on ${boardsOf(row.run)}, ${loadText(row.run)}: ${percent(off(row))}`,
    );
    console.log(`\n${name} beyond ${share(goal)}:${outside.length === 0 ? " none" : ""}`);
    for (const line of each) console.log(`- ${line}`);
  }
}

function loadText({ load, promptTokens, outputTokens, prompts }: PublishedRun): string {
  const lengths = `${promptTokens}${prompts > 0 ? " cached" : ""} + ${outputTokens}`;
  switch (load.kind) {
    case "rate":
      return `${load.perSecond}/s, ${lengths}`;
    case "users":
      return `${load.count} at once, ${lengths}`;
    case "trace":
      return `${load.name}${load.every > 1 ? `, 1 of ${load.every}` : ""}`;
  }
}

function percent(value: number): string {
  return `${value > 0 ? "+" : ""}${(100 * value).toFixed(0)} %`;
}

function share(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}
