/**
 * Predicted against measured: each profile runs live, over sockets, before a fresh fleet of emulated engines; then the
 * engine is fitted to one of the recorded traces and what-if predicts from that trace alone what the others would measure.
 *
 *     BENCH_TRACES=<folder> npx node bench/closed-loop.ts [--workload mooncake|weka] [--load moderate|high]
 *         [--profiles a,b] [--calibrate-on gnomon] [--requests n] [--time-scale 1] [--seed 1] [--port 19400]
 *         [--replicas 10] [--out folder] [--reuse]
 *
 * The folder holds mooncake/conversation_trace.jsonl and weka/*.json. Each workload and load takes about 1.3 minutes a
 * profile. Prints Markdown: what clients measured, whether the machine kept up (a run in which it did not shows
 * nothing; --time-scale 0.5 makes everything half as fast), measured at the gateway → predicted with the interval
 * of the replicas, and how the order of the policies carries over. --out keeps traces, reports, the fitted engine and
 * result.json; by default they go to a temporary folder that is removed. With --reuse live runs are taken from --out
 * where they are there.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadEngine } from "#config/engine-file.ts";
import { loadProfile } from "#config/profile-file.ts";
import { compareRuns } from "#shadow/question/compare.ts";
import { figuresInResults, figuresOfRun } from "#shadow/question/compare-results.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { TraceReader } from "#trace/reader.ts";
import { CASES, type ClosedLoopCase, PROFILES } from "./closed-loop/case.ts";
import { type LiveRun, liveRun, type LiveRunOptions } from "./closed-loop/live-run.ts";
import { predict } from "./closed-loop/prediction.ts";
import { prepareWorkload } from "./closed-loop/prepared-workload.ts";
import {
  coverageLine,
  differenceLine,
  gapTable,
  liveTable,
  machineTable,
  type ProfileRow,
  rankTable,
} from "./closed-loop/tables.ts";
import { writeWarmUp } from "./closed-loop/warm-up.ts";

const { values: flags } = parseArgs({
  options: {
    workload: { type: "string" },
    load: { type: "string" },
    profiles: { type: "string", default: PROFILES.join(",") },
    "calibrate-on": { type: "string", default: "gnomon" },
    requests: { type: "string" },
    "time-scale": { type: "string", default: "1" },
    replicas: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    port: { type: "string", default: "19400" },
    out: { type: "string" },
    reuse: { type: "boolean", default: false },
  },
});
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
if (!existsSync(traces)) {
  console.error(`bench: no traces in ${traces}; set BENCH_TRACES to a folder with mooncake/ and weka/`);
  process.exit(2);
}
const calibrateOn = flags["calibrate-on"];
const profiles = [...new Set([calibrateOn, ...flags.profiles.split(",")])];
for (const profile of profiles) loadProfile(profile);
const out = flags.out ?? mkdtempSync(join(tmpdir(), "gnomon-closed-loop-"));
try {
  for (const one of CASES) {
    if (flags.workload !== undefined && flags.workload !== one.workload) continue;
    if (flags.load !== undefined && flags.load !== one.load) continue;
    await bench(flags.requests === undefined ? one : { ...one, requests: Number(flags.requests) });
  }
} finally {
  if (flags.out === undefined) rmSync(out, { recursive: true, force: true });
}

async function bench(one: ClosedLoopCase): Promise<void> {
  const folder = join(out, `${one.workload}-${one.load}`);
  mkdirSync(folder, { recursive: true });
  const seed = Number(flags.seed);
  const timeScale = Number(flags["time-scale"]);
  const workload = join(folder, "workload.jsonl");
  const warmUp = join(folder, "warm-up.jsonl");
  const requests = await prepareWorkload(one, join(traces, one.path), workload, seed);
  writeWarmUp(warmUp, timeScale);
  const runs: LiveRun[] = [];
  for (const profile of profiles) {
    process.stderr.write(`${one.workload}, ${one.load} load: ${profile}\n`);
    runs.push(await measured({ one, profile, workload, warmUp, folder, port: Number(flags.port), timeScale, seed }));
  }
  const base = runs[0]!;
  const engine = loadEngine(one.engine);
  const { answer, imbalance } = await predict({
    trace: base.trace,
    engineFile: join(folder, "engine.yaml"),
    batchTokensMax: engine.batchTokensMax,
    modelTokensMax: engine.modelTokensMax,
    profiles: profiles.slice(1),
    replicas: Number(flags.replicas),
  });
  const rows: ProfileRow[] = [];
  for (const run of runs) {
    const recorded = figuresOfRun(await readRecordedRun(new TraceReader(run.trace).items()), run.profile);
    const { intervals, differenceInterval } = answer.candidates.find(({ name }) => name === run.profile)!;
    const predictedImbalance = imbalance.get(run.profile) ?? null;
    rows.push({ run, recorded, predictedImbalance, intervals, differences: differenceInterval });
  }
  const transfer = compareRuns(
    rows.map(({ recorded }) => recorded),
    figuresInResults(answer, "") ?? [],
  );
  const result = { case: one, timeScale, seed, requests, runs, answer, imbalance: [...imbalance], transfer };
  writeFileSync(join(folder, "result.json"), `${JSON.stringify(result)}\n`);
  console.log(`\n### ${one.workload}, ${one.load} load: ${requests} requests, ${one.engines} x ${one.engine}\n`);
  console.log(`Measured by the clients:\n\n${liveTable(runs)}\n`);
  console.log(`The machine:\n\n${machineTable(rows)}\n`);
  console.log(`Measured at the gateway → predicted from its trace under ${calibrateOn}, ms:\n`);
  console.log(
    `${gapTable(rows, transfer, calibrateOn)}\n\n${coverageLine(rows)}\n${differenceLine(rows)}\n\n${rankTable(transfer)}`,
  );
}

async function measured(options: LiveRunOptions): Promise<LiveRun> {
  const file = join(options.folder, `${options.profile}.run.json`);
  if (flags.reuse && existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as LiveRun;
  const run = await liveRun(options);
  writeFileSync(file, JSON.stringify(run));
  return run;
}
