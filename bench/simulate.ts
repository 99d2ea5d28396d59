/**
 * The whole simulator: every case in a process of its own, cold, and where the time of one of them goes.
 *
 *     npm run bench -- simulate                                   all cases
 *     npm run bench -- simulate CASE [--profile]                  one, here; or where its time goes
 *     npm run bench -- simulate --blis FOLDER [--rounds 5] [--stale-rounds 0] [--requests 100000]
 *
 * The last one runs the command in turns with BLIS, whose sources (github.com/inference-sim/inference-sim) lie in FOLDER
 * with the program built in them: `go build -o blis .`. It prints ratios of CPU time alone, since seconds are a machine's;
 * BLIS with its default gauges of 50 ms ago takes minutes a round.
 */
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { simulate } from "#sim/simulate.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import { besideBlis } from "./simulate/beside-blis.ts";
import { type PartShare, profiled } from "./simulate/parts.ts";
import { sharedPrefixes } from "./simulate/shared-prefixes.ts";
import { PLAIN_CLUSTER } from "./plain-cluster.ts";

interface Case {
  readonly requests: number;
  readonly instances: number;
  /** Requests per second and instance: 10 is light, 35 some 65 % of what one engine can do. */
  readonly ratePerInstance: number;
  readonly secondsMax: number;
}

const CASES: readonly Case[] = [
  { requests: 1_000, instances: 1, ratePerInstance: 10, secondsMax: 0.05 },
  { requests: 10_000, instances: 4, ratePerInstance: 10, secondsMax: 0.2 },
  { requests: 100_000, instances: 16, ratePerInstance: 10, secondsMax: 2 },
  { requests: 1_000_000, instances: 16, ratePerInstance: 10, secondsMax: 20 },
  { requests: 100_000, instances: 16, ratePerInstance: 35, secondsMax: 2 },
  { requests: 1_000_000, instances: 16, ratePerInstance: 35, secondsMax: 20 },
  { requests: 1_000_000, instances: 64, ratePerInstance: 35, secondsMax: 45 },
];
const MEGABYTES_MAX = 1_000;
/** The case whose time is printed by part. */
const PROFILED = 2;

/** Llama 3.1 8B on an H100 by roofline, as BLIS is measured with. */
const ENGINE: EngineConfig = engineDefaults({
  kvBlocks: 29_206,
  stepTime: {
    kind: "roofline",
    tensorParallel: 1,
    model: {
      layers: 32,
      hidden: 4096,
      heads: 32,
      kvHeads: 8,
      intermediate: 14_336,
      bytesPerParameter: 2,
      mlpMatrices: 2,
    },
    hardware: { tflopsPeak: 989.5, bandwidthTbs: 3.35, mfuPrefill: 0.45, mfuDecode: 0.3 },
  },
});

function workload({ requests, instances, ratePerInstance }: Case): string {
  return sharedPrefixes(requests, instances * ratePerInstance);
}

interface Measured {
  readonly seconds: number;
  /** Of the last run in the process; the same where there was one only. */
  readonly warmSeconds?: number;
  /** Processor time of the process, and of the thread that simulates: the wall time where nobody else is about. */
  readonly cpuSeconds: number;
  readonly threadSeconds: number;
  readonly warmThreadSeconds?: number;
  readonly megabytes: number;
  readonly events: number;
  readonly ttftMillisMean: number;
  readonly hitRate: number;
}

/** Runs of one case in a process: the first is cold, compiled as it goes; the second shows what a longer one costs. */
const RUNS = 2;

/** Generates and simulates; times include both. */
function measure(one: Case): Measured {
  const spec = parseSyntheticSpec("bench", workload(one));
  const weighted = loadProfile("weighted");
  const report = new ImportReport("bench", "synthetic", true);
  const cpuBefore = process.cpuUsage();
  const threadBefore = process.threadCpuUsage();
  const startedAt = performance.now();
  const result = simulate({
    router: {
      seed: 42,
      profiles: { weighted: weighted.spec },
      defaultProfile: "weighted",
      blockTokens: 16,
      staleAfterMicros: 3_000_000,
    },
    engines: numberedIds("instance", one.instances).map((id) => ({
      config: ENGINE,
      endpoint: {
        id,
        models: [],
        labels: {},
        kvCapacityTokens: 29_205 * 16,
        concurrencyMax: 256,
      },
    })),
    arrivals: new WorkloadArrivals(synthesize(spec, 42, report), {
      seed: 42,
      blockTokens: 16,
      timeoutMicros: Infinity,
      timeScale: 1,
      rateScale: 1,
    }),
    signals: { ...scrapedEvery(50_000), delayMicros: 10_000 },
    ...PLAIN_CLUSTER,
  });
  const seconds = (performance.now() - startedAt) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  const thread = process.threadCpuUsage(threadBefore);
  return {
    seconds,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
    threadSeconds: (thread.user + thread.system) / 1e6,
    megabytes: process.resourceUsage().maxRSS / 1024,
    events: result.events,
    ttftMillisMean: (result.metrics.ttftMicros["all"]?.mean ?? 0) / 1000,
    hitRate: result.metrics.cacheHitRate.gpu,
  };
}

const USAGE = `expected a case from 0 to ${CASES.length - 1}`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      profile: { type: "boolean", default: false },
      blis: { type: "string" },
      rounds: { type: "string", default: "5" },
      "stale-rounds": { type: "string", default: "0" },
      requests: { type: "string", default: "100000" },
    },
  });
  const [number] = positionals;
  if (number !== undefined) return here(number, values.profile);
  if (values.blis !== undefined) {
    const rounds = Number(values.rounds);
    const staleRounds = Number(values["stale-rounds"]);
    const requests = Number(values.requests);
    return besideBlis({ folder: values.blis, requests, rounds, staleRounds, engine: ENGINE });
  }
  process.stdout.write(
    "requests instances rate/inst  wall s  again  CPU s  thread  bound   MB  us/request  events/request  hits  TTFT ms\n",
  );
  CASES.forEach((one, at) => {
    const measured = JSON.parse(apart([String(at)])) as Measured;
    process.stdout.write(`${row(one, measured)}\n`);
    if ((measured.warmSeconds ?? measured.seconds) > one.secondsMax || measured.megabytes > MEGABYTES_MAX)
      process.exitCode = 1;
  });
  const { requests, instances } = CASES[PROFILED]!;
  process.stdout.write(`\nWhere the time goes, ${requests} requests on ${instances} instances\n`);
  for (const { part, share } of JSON.parse(apart([String(PROFILED), "--profile"])) as PartShare[])
    process.stdout.write(`${(100 * share).toFixed(1).padStart(6)} %  ${part}\n`);
}

async function here(number: string, profile: boolean): Promise<void> {
  const one = CASES[Number(number)];
  if (one === undefined) throw new Error(USAGE);
  if (profile) {
    const { parts } = await profiled(() => measure(one));
    process.stdout.write(JSON.stringify(parts));
    return;
  }
  const runs = Array.from({ length: one.requests > 10_000 ? 1 : RUNS }, () => measure(one));
  const last = runs.at(-1);
  process.stdout.write(
    JSON.stringify({ ...runs[0], warmSeconds: last?.seconds, warmThreadSeconds: last?.threadSeconds }),
  );
}

function apart(argv: readonly string[]): string {
  return execFileSync(process.execPath, [...process.execArgv, import.meta.filename, ...argv], { encoding: "utf8" });
}

/** Microseconds per request are the simulating thread's, of the last run: level where the cost is linear. */
function row(one: Case, measured: Measured): string {
  const thread = measured.warmThreadSeconds ?? measured.threadSeconds;
  return [
    String(one.requests).padStart(8),
    String(one.instances).padStart(9),
    String(one.ratePerInstance).padStart(9),
    measured.seconds.toFixed(3).padStart(7),
    (measured.warmSeconds ?? measured.seconds).toFixed(3).padStart(6),
    measured.cpuSeconds.toFixed(2).padStart(6),
    thread.toFixed(3).padStart(7),
    String(one.secondsMax).padStart(6),
    measured.megabytes.toFixed(0).padStart(5),
    ((thread * 1e6) / one.requests).toFixed(1).padStart(10),
    (measured.events / one.requests).toFixed(1).padStart(14),
    `${(100 * measured.hitRate).toFixed(1)} %`.padStart(7),
    measured.ttftMillisMean.toFixed(1).padStart(7),
  ].join(" ");
}

await main();
