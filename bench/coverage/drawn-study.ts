import { FIGURES } from "#shadow/question/uncertainty.ts";
import { type Asked, askedOf, type Drawn, drawnOf, type Fitted, fittedTo, METRICS, type NamedRun } from "./ask.ts";
import { drawnRun, type Machine } from "./drawn-run.ts";
import { headsOf, insideOf, percent, printCoverage, type Row, tableOf } from "./table.ts";

/** Time between two requests, of an engine that is full at about 105 ms. */
const LOADS = { light: 350_000, middle: 180_000, heavy: 125_000 } as const;
type Load = keyof typeof LOADS;
const SOURCES: readonly Load[] = ["light", "middle"];
const TARGETS = Object.keys(LOADS) as Load[];
const REQUESTS = 350;
const STEADY = { withinRun: 0.1, swingMicros: 3_000_000, stallsPerSecond: 0, stallMicros: 300_000 };
const STALLING = { ...STEADY, stallsPerSecond: 0.05 };

const MACHINES: readonly (readonly [string, Machine])[] = [
  ["the same from run to run", { ...STEADY, betweenRuns: 0 }],
  ["the same, stands still at times", { ...STALLING, betweenRuns: 0 }],
  ["6 % from run to run, stalls", { ...STALLING, betweenRuns: 0.06 }],
  ["15 % from run to run, stalls", { ...STALLING, betweenRuns: 0.15 }],
];

/** How often the interval held what happened: engines whose speeds are drawn, so that the truth is known. */
export async function drawnStudy(seeds: number): Promise<void> {
  const draws: Drawn[] = [];
  for (const runs of [1, 4]) {
    const rows: Row[] = [];
    for (const [name, machine] of MACHINES) {
      const perTarget = new Map<Load, Asked[]>(TARGETS.map((load) => [load, []]));
      let refused = 0;
      for (let seed = 0; seed < seeds; seed++) {
        const fitted = fittedTo(sourcesOf(machine, seed, runs));
        if (typeof fitted === "string") refused++;
        else await askTargets(fitted, machine, seed, perTarget, runs === 1 ? draws : undefined);
      }
      for (const [load, asked] of perTarget) rows.push({ name: `${name}: ${load}`, asked });
      const all = [...perTarget.values()].flat();
      const held = `${name}: ${percent(insideOf(all))} of ${all.length} figures inside 90 %`;
      console.log(
        `${runs === 1 ? "one run" : `${runs} runs`} calibrated, ${held}; ${refused} of ${seeds} not identified`,
      );
    }
    printCoverage(rows);
  }
  await amongThem(seeds);
  printForecasts(draws);
}

/** The same question about a run that the engine was fitted to beside another one. */
async function amongThem(seeds: number): Promise<void> {
  const rows: Row[] = [];
  for (const [name, machine] of MACHINES) {
    const asked: Asked[] = [];
    for (let seed = 0; seed < seeds; seed++) {
      const target = named(machine, "heavy", 500_000 + 16 * seed + TARGETS.indexOf("heavy"));
      const fitted = fittedTo([...sourcesOf(machine, seed, 1), target]);
      if (typeof fitted !== "string") asked.push(...(await askedOf(fitted, target, { seed })));
    }
    rows.push({ name: `${name}: heavy`, asked });
  }
  console.log("one run and the very run in question calibrated");
  printCoverage(rows);
}

function sourcesOf(machine: Machine, seed: number, runs: number): NamedRun[] {
  return Array.from({ length: runs }, (_, r) => {
    const load = SOURCES[(seed + r) % SOURCES.length]!;
    return named(machine, load, 1000 + 16 * seed + r);
  });
}

async function askTargets(
  fitted: Fitted,
  machine: Machine,
  seed: number,
  into: ReadonlyMap<Load, Asked[]>,
  draws: Drawn[] | undefined,
): Promise<void> {
  for (const [i, load] of TARGETS.entries()) {
    const target = named(machine, load, 500_000 + 16 * seed + i);
    into.get(load)!.push(...(await askedOf(fitted, target, { seed })));
    draws?.push(...drawnOf(fitted, target, { seed }));
  }
}

function named(machine: Machine, load: Load, seed: number): NamedRun {
  const run = drawnRun(machine, { requests: REQUESTS, gapMicros: LOADS[load] }, seed);
  return { name: load, run, flags: { sizes: "trace" } };
}

const FORECASTS: readonly (readonly [string, (one: Drawn) => number])[] = [
  ["the estimate", ({ estimate }) => estimate],
  ["fitted engine alone", ({ fitted }) => fitted],
  ["mean of replicas", ({ replicas }) => meanOf(replicas)],
  ["mean of logarithms", ({ replicas }) => Math.exp(meanOf(replicas.map(Math.log)))],
  ["middle half's mean of logarithms", ({ replicas }) => middleHalf(replicas)],
  ["median of replicas", ({ replicas }) => percentileOf(replicas, 0.5)],
];

/** Which single figure is the best forecast: bias and spread of the logarithm of predicted over observed. */
function printForecasts(draws: readonly Drawn[]): void {
  console.log("\nOne forecast out of 20 replicas: bias, and median of |error|, all machines and loads above");
  const table = tableOf(["", ...headsOf(), "all"]);
  for (const [name, of] of FORECASTS) {
    const cells = METRICS.flatMap(([metric]) =>
      FIGURES.map((figure) =>
        errorCell(
          draws.filter((one) => one.metric === metric && one.figure === figure),
          of,
        ),
      ),
    );
    table.push([name, ...cells, errorCell(draws, of)]);
  }
  console.log(table.toString());
}

function errorCell(draws: readonly Drawn[], of: (one: Drawn) => number): string {
  const logs = draws.map((one) => Math.log(of(one) / one.observed));
  const off = percentileOf(logs.map(Math.abs), 0.5);
  return `${(100 * meanOf(logs)).toFixed(1)} / ${(100 * off).toFixed(1)}`;
}

function middleHalf(replicas: readonly number[]): number {
  const logs = replicas.map(Math.log).sort((a, b) => a - b);
  const cut = Math.floor(logs.length / 4);
  return Math.exp(meanOf(logs.slice(cut, logs.length - cut)));
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function percentileOf(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = part * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)]!, sorted[Math.ceil(at)]!];
  return low + (high - low) * (at - Math.floor(at));
}
