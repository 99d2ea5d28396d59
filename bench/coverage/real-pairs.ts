import { existsSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { SizeFlags } from "#cli/calibrate/engine-sizes.ts";
import { readRecordedTrace } from "#cli/trace/recorded-trace.ts";
import { residualsFor, sourceRunOf } from "#shadow/recorded/engine-origin.ts";
import { type Answered, answeredOf, type Fitted, fittedTo, isSaturated, type NamedRun, sizesOf } from "./ask.ts";
import { type Apart, apartOf, priorWithout, sessionOf, withPrior } from "./run-prior.ts";
import { printClasses, printPairs, type Row } from "./table.ts";

/** Runs of one machine, each to be predicted from each other and from all others together. */
export interface Machine {
  readonly name: string;
  readonly folders: readonly string[];
  /** What the traces do not state of their engine. */
  readonly flags: SizeFlags;
}

/** Every ordered pair of runs of real engines: errors, and whether the 90 % interval held what happened. */
export async function realPairs(machines: readonly Machine[]): Promise<void> {
  const rows: Row[] = [];
  const classes = new Map<string, Answered[]>();
  const ask = async (kind: string, name: string, fitted: Fitted, target: NamedRun) => {
    const ways = kind === OWN ? (["engine"] as const) : (["trace", "engine"] as const);
    for (const speed of ways) {
      const answered = await answeredOf(fitted, target, { speed });
      const known = ways.length === 1 ? "" : speed === "trace" ? ", speed seen in it" : ", speed not known";
      const load = isSaturated(target.run) ? "saturated" : "unsaturated";
      const label = `${kind}${known}: ${load}`;
      rows.push({ name: `${name}${known}`, asked: answered.asked });
      classes.set(label, [...(classes.get(label) ?? []), answered]);
    }
  };
  for (const { name, folders, flags } of machines) {
    const runs = await Promise.all(folders.filter((one) => existsSync(one)).map((one) => opened(one, flags)));
    if (runs.length > 0) console.log(`${name}: ${runs.map((run) => run.name).join(", ")}`);
    const alone = runs.flatMap((source) => {
      const fitted = fittedTo([source]);
      if (typeof fitted !== "string") return [{ source, fitted }];
      console.log(`  ${source.name} alone cannot be calibrated: ${fitted}`);
      return [];
    });
    const isApart = (source: NamedRun, target: NamedRun) => kindOf(source, target) === OTHER_SESSION;
    const pairs = alone.flatMap(({ source, fitted }) =>
      runs.filter((target) => isApart(source, target)).flatMap((target) => apartOf(source, fitted, target) ?? []),
    );
    printPriors(pairs);
    for (const { source, fitted } of alone) {
      for (const target of runs) {
        const prior = isApart(source, target) ? priorWithout(sessionOf(target), pairs) : undefined;
        const engine = prior === undefined ? fitted : withPrior(fitted, prior);
        await ask(kindOf(source, target), `${source.name} -> ${target.name}`, engine, target);
      }
    }
    // Runs of an engine of other sizes are asked about, and not fitted with the others: calibrate refuses them.
    const bySizes = [...Map.groupBy(runs, sizesOf).values()];
    const together = bySizes.reduce<NamedRun[]>((most, some) => (some.length > most.length ? some : most), []);
    if (together.length < 2) continue;
    const all = fittedTo(together);
    for (const target of runs) {
      const others = together.filter((run) => run !== target);
      if (others.length < together.length && typeof all !== "string")
        await ask(ALL, `all -> ${target.name}`, all, target);
      if (others.length < 2) continue;
      const fitted = others.length < together.length ? fittedTo(others) : all;
      if (typeof fitted === "string") console.log(`  all but ${target.name} cannot be calibrated: ${fitted}`);
      else await ask("all other runs together", `all others -> ${target.name}`, fitted, target);
    }
    if (typeof all === "string") console.log(`  all together cannot be calibrated: ${all}`);
  }
  if (rows.length === 0) return;
  printPairs(rows);
  printClasses(classes);
}

/** What runs of other sessions are stated to differ by, for each session that is asked about. */
function printPriors(pairs: readonly Apart[]): void {
  for (const session of new Set(pairs.flatMap(({ sessions }) => sessions))) {
    const prior = priorWithout(session, pairs);
    if (prior !== undefined)
      console.log(
        `  stated by the others about ${session}: steps ${prior.level.toFixed(2)}, delay ${prior.delay.toFixed(2)}`,
      );
  }
}

const OWN = "the very run";
const OTHER_SESSION = "another session";
const ALL = "all runs together, itself among them";

/** By the same rule as what-if. */
function kindOf(source: NamedRun, target: NamedRun): string {
  if (source === target) return OWN;
  const none = { windowMicros: 1, windows: [[0]], levelError: 0, delayError: 0, prefillError: 0 };
  const { notes } = residualsFor(none, { runs: [sourceRunOf(source.run.header)] }, target.run.header);
  return notes.some((note) => note.includes("of the same hours")) ? "same session" : OTHER_SESSION;
}

async function opened(folder: string, flags: SizeFlags): Promise<NamedRun> {
  const { run } = await readRecordedTrace(folder);
  return { name: `${basename(dirname(folder))}/${basename(folder)}`, run, flags };
}
