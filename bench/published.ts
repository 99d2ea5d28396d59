/**
 * What `simulate --model-config` makes of published measurements of vLLM, and how far off it is: each model on its
 * boards by constants that were fitted to all others.
 *
 *     npm run bench -- published              errors by model and boards
 *     npm run bench -- published --shipped    by the constants in src/engine/achieved.ts, which all of them were fitted to
 *     npm run bench -- published --runs       every run, with its source
 *     npm run bench -- published --fit        factors by which those constants would change if they were fitted again
 */
import { parseArgs } from "node:util";
import { FITTED } from "./published/constants.ts";
import { groupOf, predict, Slopes } from "./published/fit.ts";
import { type PublishedRun, publishedRuns, SOURCES } from "./published/runs.ts";

const ONES = FITTED.map(() => 1);
const ROUNDS = 2;

interface Judged {
  readonly run: PublishedRun;
  readonly ttftMillis: number;
  readonly tpotMillis: number;
}

function main(): void {
  const { values } = parseArgs({
    options: { shipped: { type: "boolean" }, runs: { type: "boolean" }, fit: { type: "boolean" } },
  });
  const runs = publishedRuns();
  const progress = () => process.stderr.write(".");
  if (values.fit === true) return printFit(runs, progress);
  const factors = values.shipped === true ? undefined : leftOut(runs, progress);
  const rows = runs.map((run) => ({ run, ...predict(run, factors?.get(groupOf(run)) ?? ONES) }));
  if (values.runs === true) printRuns(rows);
  else printGroups(rows);
}

function printFit(runs: readonly PublishedRun[], progress: () => void): void {
  let factors: readonly number[] = ONES;
  for (let round = 0; round < ROUNDS; round++) factors = new Slopes(runs, factors, progress).without(undefined);
  console.log(FITTED.map((name, i) => `${name} x ${factors[i]!.toFixed(3)}`).join("\n"));
}

/** For each model on its boards, factors fitted to all others. */
function leftOut(runs: readonly PublishedRun[], progress: () => void): Map<string, readonly number[]> {
  const slopes = new Slopes(runs, ONES, progress);
  return new Map(runs.map((run) => [groupOf(run), slopes.without(groupOf(run))]));
}

const tpotOff = ({ run, tpotMillis }: Judged) => tpotMillis / run.tpotMillis - 1;
const ttftOff = ({ run, ttftMillis }: Judged) =>
  run.ttftMillis === undefined || run.saturated ? NaN : ttftMillis / run.ttftMillis - 1;

function printGroups(rows: readonly Judged[]): void {
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

function printRuns(rows: readonly Judged[]): void {
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

function printSummary(rows: readonly Judged[]): void {
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

main();
