import { execFileSync } from "node:child_process";
import { loadProfile } from "#config/profile-file.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { simulate } from "#sim/simulate.ts";
import { NO_LATENCY } from "#sim/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";

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
];
const MEGABYTES_MAX = 2_000;

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

/** Prompts of a shared prefix of 1,024 tokens (32 of them) and 512 +- 128 of their own, answers of 128 +- 64. */
function workload({ requests, instances, ratePerInstance }: Case): string {
  return `
conversations: ${requests}
arrivals: { process: constant, ratePerSecond: ${instances * ratePerInstance} }
groups:
  - name: shared
    prefixes: 32
    prefixTokens: 1024
    userTokens: { distribution: normal, mean: 512, stddev: 128, min: 2, max: 7000 }
    outputTokens: { distribution: normal, mean: 128, stddev: 64, min: 2, max: 512 }
`;
}

interface Measured {
  readonly seconds: number;
  /** Of the last run in the process; the same where there was one only. */
  readonly warmSeconds?: number;
  readonly cpuSeconds: number;
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
  const startedAt = performance.now();
  const result = simulate({
    router: {
      seed: 42,
      profiles: { weighted: weighted.spec },
      defaultProfile: "weighted",
      blockTokens: 16,
      staleAfterMicros: 3_000_000,
    },
    engines: Array.from({ length: one.instances }, (_, number) => ({
      config: ENGINE,
      endpoint: {
        id: `instance_${String(number).padStart(2, "0")}`,
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
    signals: { mode: "scrape", intervalMicros: 50_000, phase: "spread", delayMicros: 10_000, lossShare: 0 },
    prefixes: { kind: "approximate" },
    latency: NO_LATENCY,
    horizonMicros: Infinity,
    over: "answered",
    tokenGaps: false,
    check: false,
  });
  const seconds = (performance.now() - startedAt) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  return {
    seconds,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
    megabytes: process.resourceUsage().maxRSS / 1024,
    events: result.events,
    ttftMillisMean: (result.metrics.ttftMicros["all"]?.mean ?? 0) / 1000,
    hitRate: result.metrics.cacheHitRate.gpu,
  };
}

/** `node bench/simulate.ts [case]`: every case in a process of its own, cold, so that memory is its own; or one here. */
function main(argument: string | undefined): void {
  if (argument !== undefined) {
    const one = CASES[Number(argument)];
    if (one === undefined) throw new Error(`expected a case from 0 to ${CASES.length - 1}, got ${argument}`);
    const runs = Array.from({ length: one.requests > 10_000 ? 1 : RUNS }, () => measure(one));
    process.stdout.write(JSON.stringify({ ...runs[0], warmSeconds: runs.at(-1)?.seconds }));
    return;
  }
  process.stdout.write(
    "requests instances rate/inst  wall s  again  CPU s  bound   MB  us/request  events/request  hits  TTFT ms\n",
  );
  CASES.forEach((one, number) => {
    const measured = JSON.parse(
      execFileSync(process.execPath, [...process.execArgv, import.meta.filename, String(number)], { encoding: "utf8" }),
    ) as Measured;
    process.stdout.write(`${row(one, measured)}\n`);
    if ((measured.warmSeconds ?? measured.seconds) > one.secondsMax || measured.megabytes > MEGABYTES_MAX)
      process.exitCode = 1;
  });
}

function row(one: Case, measured: Measured): string {
  return [
    String(one.requests).padStart(8),
    String(one.instances).padStart(9),
    String(one.ratePerInstance).padStart(9),
    measured.seconds.toFixed(3).padStart(7),
    (measured.warmSeconds ?? measured.seconds).toFixed(3).padStart(6),
    measured.cpuSeconds.toFixed(2).padStart(6),
    String(one.secondsMax).padStart(6),
    measured.megabytes.toFixed(0).padStart(5),
    ((measured.seconds * 1e6) / one.requests).toFixed(1).padStart(10),
    (measured.events / one.requests).toFixed(1).padStart(14),
    `${(100 * measured.hitRate).toFixed(1)} %`.padStart(7),
    measured.ttftMillisMean.toFixed(1).padStart(7),
  ].join(" ");
}

main(process.argv[2]);
