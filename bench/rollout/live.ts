import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/units.ts";
import type { MeanEstimate } from "#core/rollout/judge/confidence-sequence.ts";
import type { Times } from "#core/rollout/judge/outcome.ts";
import type { Design } from "#core/rollout/rollout-plan.ts";
import { runCandidate, type Setting } from "#shadow/question/candidate.ts";
import { type Observed, type RecordedRun, readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { TraceReader } from "#trace/reader.ts";
import { CASES } from "../closed-loop/case.ts";
import { type LiveRun, liveRun, troubles } from "../closed-loop/live-run.ts";
import { prepareWorkload } from "../closed-loop/prepared-workload.ts";
import { writeWarmUp } from "../closed-loop/warm-up.ts";
import { type RecordedRollout, recordedRollout } from "./recorded-rollout.ts";
import { candidateNamed, traceSetting } from "./study-setting.ts";

const CASE = CASES[0]!;
const PORT = 19_700;
const SEED = 1;
const SIMULATED = 16;
/** Part of a run that is not compared, as in the plan. */
const BEGINNING = 0.1;
/** About that part of the case's time. */
const BASELINE_MILLIS = 8_000;
/** Normal quantile of the 90 % that an interval is to hold. */
const ERRORS = 1.645;

const window = (seconds: number) => seconds * MICROS_PER_SECOND;
const SPLIT: Design = { kind: "split", windowMicros: window(10), by: "request" };
const SWITCHBACK: Design = { kind: "switchback", windowMicros: window(5), washoutMicros: window(1) };
const CANARY: Design = { kind: "canary", windowMicros: window(600), by: "request", stepPercents: [25] };

interface LiveRollout {
  readonly name: string;
  readonly control: string;
  readonly other: string;
  readonly design: Design;
}

/** A rollout of each kind, and the pairs of the bias bench. */
const ROLLOUTS: readonly LiveRollout[] = [
  { name: "split-rr", control: "gnomon", other: "round-robin", design: SPLIT },
  { name: "switchback-rr", control: "gnomon", other: "round-robin", design: SWITCHBACK },
  { name: "split-load", control: "gnomon", other: "least-loaded", design: SPLIT },
  { name: "switchback-load", control: "gnomon", other: "least-loaded", design: SWITCHBACK },
  { name: "canary-rr", control: "gnomon", other: "round-robin", design: CANARY },
];

/**
 * Rollouts live, over sockets, before emulated engines, beside what a plan of the same requests says they show; and the
 * truth live, a run of all requests by each profile. Runs that are in the folder are not done again.
 */
export async function live(traces: string, folder: string, only: string | undefined): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const workload = join(folder, "workload.jsonl");
  const warmUp = join(folder, "warm-up.jsonl");
  await prepareWorkload(CASE, join(traces, CASE.path), workload, SEED);
  writeWarmUp(warmUp, 1);
  const common = { one: CASE, workload, warmUp, folder, port: PORT, timeScale: 1, seed: SEED };
  const setting = await traceSetting(workload, { endpoints: CASE.engines, engine: CASE.engine, limit: Infinity });
  const isAsked = (name: string) =>
    only === "report" ? existsSync(runFile(folder, name)) : (only?.split(",").includes(name) ?? true);
  const profiles = [...new Set(ROLLOUTS.flatMap(({ control, other }) => [control, other]))];
  for (const profile of profiles) {
    if (!isAsked(profile)) continue;
    const run = await kept(folder, profile, () => liveRun({ ...common, profile }));
    const [ttft, e2e] = meansOf(await readRecordedRun(new TraceReader(run.trace).items()));
    print(`all by ${profile}: TTFT ${ms(ttft)}, E2E ${ms(e2e)} ${troubles(run.machine).join(", ")}`);
  }
  for (const one of ROLLOUTS) {
    if (!isAsked(one.name)) continue;
    const file = join(folder, `${one.name}.yaml`);
    writeFileSync(file, JSON.stringify(configOf(one)));
    const config = { file, name: one.name };
    const run = await kept(folder, one.name, () => liveRun({ ...common, profile: one.control, config }));
    const measured = await recordedRollout(run.trace, one.design, predictionsOf(setting, one.control));
    const study = await rolloutStudy({
      setting,
      control: candidateNamed(one.control),
      other: candidateNamed(one.other),
      designs: () => [{ name: one.name, design: one.design, stages: 1 }],
      runs: SIMULATED,
      power: 0.8,
      level: 0.05,
      figure: "e2e.mean",
      hours: [1],
    });
    report(one, measured, study.designs[0]!.figures, troubles(run.machine));
  }
}

/** What the simulator predicts of each request if the control routes all, in order of arrival. */
function predictionsOf(setting: Setting, control: string): (place: number) => Times | undefined {
  const { ttftMicros, e2eMicros } = runCandidate(setting, candidateNamed(control));
  const rows = [...setting.workload].sort((a, b) => a.arrivalMicros - b.arrivalMicros).map(({ index }) => index);
  return (place) => {
    const row = rows[place];
    return row === undefined ? undefined : { ttft: ttftMicros[row], tpot: undefined, e2e: e2eMicros[row] };
  };
}

/** Of the requests that a rollout would compare: those after the beginning. */
function meansOf({ workload, observed }: RecordedRun): readonly [ttft: number, e2e: number] {
  const last = workload.reduce((latest, { arrivalMicros }) => Math.max(latest, arrivalMicros), 0);
  const counted = observed.filter((_, row) => workload[row]!.arrivalMicros >= BEGINNING * last);
  const mean = (of: (one: Observed) => number) => {
    const known = counted.map(of).filter(Number.isFinite);
    return known.reduce((sum, value) => sum + value, 0) / known.length;
  };
  return [mean(({ ttftMicros }) => ttftMicros), mean(({ e2eMicros }) => e2eMicros)];
}

function report(
  one: LiveRollout,
  { ttft, e2e, requests, failed }: RecordedRollout,
  figures: Awaited<ReturnType<typeof rolloutStudy>>["designs"][number]["figures"],
  troubled: readonly string[],
): void {
  print(`${one.name}: ${one.control} -> ${one.other}, ${requests} requests, ${failed} failed ${troubled.join(", ")}`);
  for (const [key, [measured, adjusted]] of [
    ["ttft.mean", ttft],
    ["e2e.mean", e2e],
  ] as const) {
    const { truth, estimate, biasError, runError } = figures[key];
    const reach = ERRORS * Math.hypot(biasError, runError);
    const isInside = Math.abs(measured.mean - estimate) <= reach;
    const interval = `${ms(estimate - reach)} to ${ms(estimate + reach)}`;
    print(
      `  ${key}: truth ${ms(truth)}, predicted to show ${ms(estimate)} (${interval}), measured ${ms(measured.mean)}, ${isInside ? "inside" : "OUTSIDE"}; ` +
        `adjusted ${ms(adjusted.mean)}, ${varianceLeft(measured, adjusted)} of the variance left`,
    );
  }
}

function varianceLeft(plain: MeanEstimate, adjusted: MeanEstimate): string {
  const share = adjusted.deviation ** 2 / adjusted.count / (plain.deviation ** 2 / plain.count);
  return `${(100 * share).toFixed(0)} %`;
}

function configOf({ name, control, other, design }: LiveRollout): object {
  const { windowMicros, ...rest } = design;
  const washout = "washoutMicros" in rest ? { washoutMillis: rest.washoutMicros / MICROS_PER_MILLI } : {};
  const by = "by" in rest ? { by: rest.by } : {};
  const steps = "stepPercents" in rest ? { stepPercents: rest.stepPercents } : {};
  return {
    rollout: {
      lookMillis: 1000,
      start: [
        {
          name,
          arms: [
            { name: "control", profile: control },
            { name: "other", profile: other },
          ],
          design: { kind: design.kind, windowMillis: windowMicros / MICROS_PER_MILLI, ...washout, ...by, ...steps },
          baselineMillis: BASELINE_MILLIS,
          guardrails: [],
        },
      ],
    },
  };
}

function runFile(folder: string, name: string): string {
  return join(folder, `${name}.run.json`);
}

async function kept(folder: string, name: string, run: () => Promise<LiveRun>): Promise<LiveRun> {
  const file = runFile(folder, name);
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as LiveRun;
  const result = await run();
  writeFileSync(file, JSON.stringify(result));
  return result;
}

function ms(micros: number): string {
  return `${(micros / MICROS_PER_MILLI).toFixed(1)} ms`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
