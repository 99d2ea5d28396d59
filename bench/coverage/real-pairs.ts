import { existsSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { SizeFlags } from "#cli/calibrate/engine-sizes.ts";
import { readRecordedTrace } from "#cli/trace/recorded-trace.ts";
import { type Asked, askedOf, fittedTo, type NamedRun } from "./ask.ts";
import { insideOf, percent, printPairs, type Row } from "./table.ts";

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
  const kinds = new Map<string, Asked[]>();
  const add = (kind: string, name: string, asked: readonly Asked[]) => {
    rows.push({ name, asked });
    kinds.set(kind, [...(kinds.get(kind) ?? []), ...asked]);
  };
  for (const { name, folders, flags } of machines) {
    const runs = await Promise.all(folders.filter((one) => existsSync(one)).map((one) => opened(one, flags)));
    if (runs.length > 0) console.log(`${name}: ${runs.map((run) => run.name).join(", ")}`);
    for (const source of runs) {
      const fitted = fittedTo([source]);
      if (typeof fitted === "string") {
        console.log(`  ${source.name} alone cannot be calibrated: ${fitted}`);
        continue;
      }
      for (const target of runs) {
        const kind = target === source ? "a run from itself" : "a run from another one";
        add(kind, `${source.name} -> ${target.name}`, await askedOf(fitted, target));
      }
    }
    if (runs.length > 1) {
      const fitted = fittedTo(runs);
      if (typeof fitted === "string") console.log(`  all together cannot be calibrated: ${fitted}`);
      else
        for (const target of runs)
          add("a run from all together, itself among them", `all -> ${target.name}`, await askedOf(fitted, target));
    }
    if (runs.length < 3) continue;
    for (const target of runs) {
      const fitted = fittedTo(runs.filter((run) => run !== target));
      if (typeof fitted === "string") console.log(`  all but ${target.name} cannot be calibrated: ${fitted}`);
      else add("a run from all others together", `all others -> ${target.name}`, await askedOf(fitted, target));
    }
  }
  if (rows.length === 0) return;
  printPairs(rows);
  for (const [kind, asked] of kinds) console.log(`${kind}: ${percent(insideOf(asked))} of ${asked.length} inside 90 %`);
}

async function opened(folder: string, flags: SizeFlags): Promise<NamedRun> {
  const { run } = await readRecordedTrace(folder);
  return { name: `${basename(dirname(folder))}/${basename(folder)}`, run, flags };
}
