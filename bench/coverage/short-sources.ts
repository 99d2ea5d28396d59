import { basename, join } from "node:path";
import { readRecordedTrace } from "#cli/trace/recorded-trace.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import { type Answered, answeredOf, fittedTo, isSaturated, type NamedRun } from "./ask.ts";
import { printClasses, printPairs, type Row } from "./table.ts";

/** Requests of a part that is fitted to, and how far one begins behind the one before it. */
const LENGTHS = [100, 150];
const APART = 75;
const DAY_MICROS = 86_400 * MICROS_PER_SECOND;

/**
 * Engines that were fitted to short parts of a run, asked about another run as if it were of another day, with its speed
 * seen in it. A short part at one load may show no prefill rate, or no delay outside the engine.
 */
export async function shortSources(folders: readonly string[]): Promise<void> {
  const runs = await Promise.all(folders.map(opened));
  const rows: Row[] = [];
  const classes = new Map<string, Answered[]>();
  let refused = 0;
  for (const source of runs) {
    for (const { name, part } of LENGTHS.flatMap((length) => partsOf(source, length))) {
      const fitted = fittedTo([part]);
      if (typeof fitted === "string") {
        refused++;
        continue;
      }
      const { stepTime, queueDelay } = fitted.engine;
      const rate = stepTime.kind === "coefficients" ? stepTime.perPrefillTokenMicros : 0;
      const lacks = [...(rate > 0 ? [] : ["prefill rate"]), ...(queueDelay.baseMicros > 0 ? [] : ["delay"])];
      for (const target of runs) {
        if (target === source) continue;
        const header = { ...target.run.header, startWallMicros: target.run.header.startWallMicros + DAY_MICROS };
        const answered = await answeredOf(fitted, { ...target, run: { ...target.run, header } }, { speed: "trace" });
        const load = isSaturated(target.run) ? "saturated" : "unsaturated";
        const label = `${lacks.length > 0 ? `fit without ${lacks.join(" and ")}` : "whole fit"}: ${load}`;
        rows.push({ name: `${name} -> ${target.name}`, asked: answered.asked });
        classes.set(label, [...(classes.get(label) ?? []), answered]);
      }
    }
  }
  console.log(`${refused} parts cannot be calibrated`);
  printPairs(rows);
  printClasses(classes);
}

function partsOf({ name, run, flags }: NamedRun, length: number): { name: string; part: NamedRun }[] {
  const starts = Math.max(0, Math.floor((run.workload.length - length) / APART)) + 1;
  return Array.from({ length: starts }, (_, i) => {
    const [from, until] = [i * APART, i * APART + length];
    const cut: RecordedRun = {
      ...run,
      workload: run.workload.slice(from, until),
      observed: run.observed.slice(from, until),
    };
    const named = `${name} ${from}-${until}`;
    return { name: named, part: { name: named, run: cut, flags } };
  });
}

async function opened(folder: string): Promise<NamedRun> {
  const { run } = await readRecordedTrace(folder);
  return { name: basename(folder), run, flags: { sizes: "trace" } };
}

/** The given runs of one vLLM on a CPU. */
export function givenCpuRuns(traces: string): string[] {
  return ["light", "heavy"].map((name) => join(traces, "vllm-cpu", name));
}
