/**
 * Loses an engine live and by what-if: a workload runs over sockets before a fleet of emulated engines of which one is
 * killed and comes back, and once undisturbed; what-if then answers from the undisturbed run's trace alone, with the
 * engine fitted to it, what the loss would have done (`--lose`). Printed beside each other: what clients met, requests
 * that were retried, and answers that were cut.
 *
 *     BENCH_TRACES=<folder> npx node bench/lost-engine.ts [--profiles gnomon,least-loaded] [--requests 1200]
 *         [--rate-scale 6] [--after-seconds 15] [--for-seconds 20] [--seed 1] [--port 19500] [--replicas 10]
 *
 * The folder holds mooncake/conversation_trace.jsonl. Two minutes a profile. "Undisturbed" shows how far the model is off
 * where nothing is lost; the machine's row, whether it kept up.
 */
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadCalibratedEngine, loadEngine } from "#config/engine-file.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/units.ts";
import type { Scenario } from "#shadow/question/candidate.ts";
import { whatIf, type CandidateAnswer } from "#shadow/question/what-if.ts";
import { figuresOfRun } from "#shadow/question/compare-results.ts";
import { inForceOf } from "#shadow/recorded/in-force.ts";
import { type RecordedRun, readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { recordedSetting } from "#shadow/recorded/recorded-setting.ts";
import { TraceReader } from "#trace/reader.ts";
import { CASES } from "./closed-loop/case.ts";
import { type LiveRun, liveRun, troubles } from "./closed-loop/live-run.ts";
import { prepareWorkload } from "./closed-loop/prepared-workload.ts";
import { Program } from "./closed-loop/program.ts";
import { markdown } from "./closed-loop/tables.ts";
import { writeWarmUp } from "./closed-loop/warm-up.ts";

const { values: flags } = parseArgs({
  options: {
    profiles: { type: "string", default: "gnomon,least-loaded" },
    requests: { type: "string", default: "1200" },
    "rate-scale": { type: "string", default: "6" },
    engines: { type: "string", default: "4" },
    "after-seconds": { type: "string", default: "15" },
    "for-seconds": { type: "string", default: "20" },
    replicas: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    port: { type: "string", default: "19500" },
  },
});
const HEAD = ["", "TTFT ms mean", "p99", "TPOT ms mean", "E2E ms mean", "p99", "retries", "cut answers"];
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const base = CASES[0]!;
const one = {
  ...base,
  requests: Number(flags.requests),
  rateScale: Number(flags["rate-scale"]),
  engines: Number(flags.engines),
};
const port = Number(flags.port);
if (!existsSync(join(traces, one.path))) {
  console.error(`bench: no ${one.path} in ${traces}; set BENCH_TRACES to a folder that has it`);
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), "gnomon-lost-engine-"));
try {
  const workload = join(folder, "workload.jsonl");
  const warmUp = join(folder, "warm-up.jsonl");
  const seed = Number(flags.seed);
  const requests = await prepareWorkload(one, join(traces, one.path), workload, seed);
  writeWarmUp(warmUp, 1);
  const loss = { afterMillis: 1000 * Number(flags["after-seconds"]), forMillis: 1000 * Number(flags["for-seconds"]) };
  console.log(
    `${requests} requests of Mooncake, ${one.engines} x ${one.engine}; one engine is killed after ` +
      `${flags["after-seconds"]} s, a new one ready some ${flags["for-seconds"]} s later\n`,
  );
  for (const profile of flags.profiles.split(",")) {
    const common = { one, profile, workload, warmUp, folder, port, timeScale: 1, seed };
    const undisturbed = await liveRun(common);
    const disturbed = await liveRun({ ...common, loss });
    await compared(undisturbed, disturbed);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function compared(undisturbed: LiveRun, disturbed: LiveRun): Promise<void> {
  const [before, after] = [await read(undisturbed.trace), await read(disturbed.trace)];
  const answer = await predicted(undisturbed, before, scenarioOf(disturbed, after));
  const asItWas = answer.find(({ scenario }) => scenario === "")!;
  const lost = answer.find(({ scenario }) => scenario !== "")!;
  const rows = [
    rowOf("undisturbed, live", live(undisturbed, before)),
    rowOf("undisturbed, predicted", simulated(asItWas)),
    rowOf("engine lost, live", live(disturbed, after)),
    rowOf("engine lost, predicted", simulated(lost)),
    intervalRow(lost),
  ];
  console.log(`### ${undisturbed.profile}\n\n${markdown(HEAD, rows)}\n`);
  const late = [undisturbed, disturbed].flatMap(({ machine }) => troubles(machine));
  console.log(`The machine: ${late.length === 0 ? "kept up" : late.join(", ")}\n`);
}

interface RecordedLive extends RecordedRun {
  /** On the trace's clock. */
  readonly firstArrivalMicros: number;
}

async function read(trace: string): Promise<RecordedLive> {
  let firstArrivalMicros = Number.NaN;
  for await (const item of new TraceReader(trace).items()) {
    if (item.kind !== "record" || item.input.kind !== "request-arrived") continue;
    firstArrivalMicros = item.input.at;
    break;
  }
  // The driver waits within the sessions that it names, and sends all else by the clock.
  return { ...(await readRecordedRun(new TraceReader(trace).items(), "named")), firstArrivalMicros };
}

interface Figures {
  readonly means: readonly (number | undefined)[];
  readonly retried: number;
  readonly cut: number;
}

function rowOf(name: string, { means, retried, cut }: Figures): string[] {
  const digits = [0, 0, 1, 0, 0];
  return [name, ...means.map((mean, i) => mean?.toFixed(digits[i]) ?? ""), String(retried), String(cut)];
}

function intervalRow({ intervals }: CandidateAnswer): string[] {
  const of = (metric: "ttftMicros" | "tpotMicros" | "e2eMicros", figure: "mean" | "p99", digits: number): string => {
    const interval = intervals[metric]?.[figure];
    if (interval === undefined) return "";
    return `${(interval.low / MICROS_PER_MILLI).toFixed(digits)}-${(interval.high / MICROS_PER_MILLI).toFixed(digits)}`;
  };
  return [
    "its 90 % interval",
    of("ttftMicros", "mean", 0),
    of("ttftMicros", "p99", 0),
    of("tpotMicros", "mean", 1),
    of("e2eMicros", "mean", 0),
    of("e2eMicros", "p99", 0),
    "",
    "",
  ];
}

/** As the gateway saw it, from its decision on. */
function live({ profile }: LiveRun, run: RecordedRun): Figures {
  const { figures } = figuresOfRun(run, profile);
  const means = [figures.ttftMean, figures.ttftP99, figures.tpotMean, figures.e2eMean, figures.e2eP99];
  return {
    means: means.map((micros) => (micros === undefined ? undefined : micros / MICROS_PER_MILLI)),
    retried: run.observed.reduce((sum, { attempts }) => sum + Math.max(0, attempts - 1), 0),
    cut: run.observed.filter(({ ok }) => !ok).length,
  };
}

function simulated({ predicted: { ttftMicros, tpotMicros, e2eMicros }, path }: CandidateAnswer): Figures {
  const means = [ttftMicros?.mean, ttftMicros?.p99, tpotMicros?.mean, e2eMicros?.mean, e2eMicros?.p99];
  return {
    means: means.map((micros) => (micros === undefined ? undefined : micros / MICROS_PER_MILLI)),
    retried: path.retries,
    cut: path.cuts,
  };
}

async function predicted(
  { trace }: LiveRun,
  run: RecordedRun,
  scenario: Scenario,
): Promise<readonly CandidateAnswer[]> {
  const engineFile = `${trace}.yaml`;
  const { batchTokensMax, modelTokensMax } = loadEngine(one.engine);
  const sizes = { "batch-tokens-max": batchTokensMax, "model-tokens-max": modelTokensMax };
  await Program.run({ command: "calibrate", operands: [trace], flags: { output: engineFile, ...sizes } });
  const { engine, residuals } = loadCalibratedEngine(engineFile);
  const inForce = inForceOf(run.header, run.fleetEvents);
  const { candidates } = await whatIf({
    setting: recordedSetting(run, { engine, residuals, signals: scrapedEvery(MICROS_PER_SECOND) }),
    inForce,
    candidates: [{ ...inForce, name: `${inForce.name}, an engine lost`, scenario }],
    observed: run.observed,
    replicas: Number(flags.replicas),
  });
  return candidates;
}

/** The loss as `what-if --lose` has it: at the time after the first arrival at which it happened. */
function scenarioOf({ lost }: LiveRun, { header, endpoints, firstArrivalMicros }: RecordedLive): Scenario {
  const endpoint = endpoints.find(({ id }) => id.endsWith(`:${port + one.engines}`))!.id;
  const since = (wallMillis: number): number =>
    Math.round(wallMillis * MICROS_PER_MILLI - header.startWallMicros - firstArrivalMicros);
  return {
    label: "an engine lost",
    faults: [
      { kind: "engine-killed", at: since(lost!.fromWallMillis), endpoint },
      { kind: "engine-started", at: since(lost!.toWallMillis), endpoint },
    ],
  };
}
