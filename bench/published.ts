/**
 * What `simulate --model-config` makes of published measurements of vLLM, and how far off it is: each model on its
 * boards by constants that were fitted to all others.
 *
 *     npm run bench -- published              errors by model and boards, and of the other formulas for step times
 *     npm run bench -- published --shipped    by the constants in src/engine/achieved.ts, which all of them were fitted to
 *     npm run bench -- published --runs       every run, with its source
 *     npm run bench -- published --handovers  of engines that hand prompts over to others, each group left out
 *     npm run bench -- published --kernels BOARD:FOLDER...   of measured kernels: what calibrate --from-kernels makes of them
 *     npm run bench -- published --fit        factors by which those constants would change if they were fitted again
 */
import { parseArgs } from "node:util";
import { groupOf, knownTo, predict, Slopes } from "./published/fit.ts";
import type { Form } from "./published/form.ts";
import { printHandovers } from "./published/handovers.ts";
import { KERNEL_ROOFLINE } from "./published/kernel-roofline-form.ts";
import { kernelTables } from "./published/kernel-table-form.ts";
import { type Judged, printGroups, printOutside, printRuns, printSummary } from "./published/print.ts";
import { type PublishedRun, publishedRuns } from "./published/runs.ts";
import { TRAINED_PHYSICS, TRAINED_PHYSICS_BLIS } from "./published/trained-physics-form.ts";

const ROUNDS = 2;
/** From coefficients that were fitted to other runs it takes some more. */
const ROUNDS_TRAINED = 4;

const progress = () => process.stderr.write(".");
const onesOf = ({ fitted }: Form) => fitted.map(() => 1);

function main(): void {
  const { values } = parseArgs({
    options: {
      shipped: { type: "boolean" },
      runs: { type: "boolean" },
      fit: { type: "boolean" },
      handovers: { type: "boolean" },
      kernels: { type: "string", multiple: true },
    },
  });
  if (values.handovers === true) return printHandovers();
  const runs = publishedRuns();
  if (values.kernels !== undefined) return printKernels(runs, values.kernels, values.runs === true);
  if (values.fit === true) return printFit(runs);
  const left = values.shipped === true ? undefined : leftOut(KERNEL_ROOFLINE, runs, onesOf(KERNEL_ROOFLINE));
  const rows = judged(KERNEL_ROOFLINE, runs, left);
  if (values.runs === true) return printRuns(rows);
  printGroups(rows);
  printOutside(rows);
  if (values.shipped !== true) printOthers(runs);
}

/** Beside what the roofline makes of the same runs, whose constants are fitted to all others. */
function printKernels(runs: readonly PublishedRun[], given: readonly string[], byRun: boolean): void {
  const byBoard = Map.groupBy(given, (one) => one.slice(0, one.indexOf(":")));
  const rows: Judged[] = [];
  for (const [board, own] of byBoard) {
    const folders = own.map((one) => one.slice(one.indexOf(":") + 1));
    rows.push(...judged(kernelTables(folders, board, console.error), runs, undefined));
  }
  if (byRun) printRuns(rows);
  else printGroups(rows);
  const known = new Set(rows.map(({ run }) => run));
  const left = leftOut(KERNEL_ROOFLINE, runs, onesOf(KERNEL_ROOFLINE));
  console.log("\nthe roofline on these runs, each model left out");
  printSummary(judged(KERNEL_ROOFLINE, runs, left).filter(({ run }) => known.has(run)));
}

function printFit(runs: readonly PublishedRun[]): void {
  const factors = fittedTo(KERNEL_ROOFLINE, runs, ROUNDS);
  console.log(KERNEL_ROOFLINE.fitted.map(({ name }, i) => `${name} x ${factors[i]!.toFixed(3)}`).join("\n"));
}

function fittedTo(form: Form, runs: readonly PublishedRun[], rounds: number): readonly number[] {
  let factors = onesOf(form);
  for (let round = 0; round < rounds; round++)
    factors = [...new Slopes(form, runs, factors, progress).without(undefined)];
  return factors;
}

/** For each model on its boards, factors fitted to all others. */
function leftOut(
  form: Form,
  runs: readonly PublishedRun[],
  from: readonly number[],
): ReadonlyMap<string, readonly number[]> {
  const slopes = new Slopes(form, runs, from, progress);
  return new Map(runs.map((run) => [groupOf(run), slopes.without(groupOf(run))]));
}

function judged(
  form: Form,
  runs: readonly PublishedRun[],
  left: ReadonlyMap<string, readonly number[]> | undefined,
): Judged[] {
  return knownTo(form, runs).map((run) => ({ run, ...predict(form, run, left?.get(groupOf(run)) ?? onesOf(form))! }));
}

/** The other formulas on those of the runs whose models they know. */
function printOthers(runs: readonly PublishedRun[]): void {
  const known = knownTo(TRAINED_PHYSICS, runs);
  const trained = leftOut(TRAINED_PHYSICS, known, fittedTo(TRAINED_PHYSICS, known, ROUNDS_TRAINED));
  for (const [name, rows] of [
    ["trained-physics, fitted as this one", judged(TRAINED_PHYSICS, known, trained)],
    [TRAINED_PHYSICS_BLIS.name, judged(TRAINED_PHYSICS_BLIS, known, undefined)],
  ] as const) {
    console.log(`\n${name}; none of models with latent attention`);
    printSummary(rows);
  }
}

main();
