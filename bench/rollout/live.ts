import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { join } from "node:path";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { loadCalibratedEngine } from "#config/engine-file.ts";
import { BETWEEN_RUNS_STATED } from "#shadow/recorded/between-runs.ts";
import { calibrate } from "#shadow/calibrate/calibrate.ts";
import { evidenceOf } from "#shadow/calibrate/evidence.ts";
import type { Setting } from "#shadow/candidate/candidate.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";
import type { DesignStudy } from "#shadow/rollout/design-study.ts";
import { type JudgedRollout, judgedRollout, recordedControl } from "#shadow/rollout/judged-rollout.ts";
import type { ShownIntervals } from "#shadow/rollout/shown-interval.ts";
import { type RecordedRun, readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { TraceReader } from "#trace/reader.ts";
import { CASES } from "../closed-loop/case.ts";
import { type LiveRun, liveRun, troubles } from "../closed-loop/live-run.ts";
import { prepareWorkload } from "../closed-loop/prepared-workload.ts";
import { writeWarmUp } from "../closed-loop/warm-up.ts";
import { candidateNamed } from "./study-setting.ts";

const CASE = CASES[0]!;
const SEED = 1;
const SIMULATED = 16;
/** Part of a run that is not compared, as in the plan. */
const BEGINNING = 0.1;
/** About that part of the case's time. */
const BASELINE_MILLIS = 16_000;
/**
 * Seconds of the workload and of the engines per second of the wall clock: fleet, gateway and driver share two cores, which
 * hold this. To the gateway and to the plan these are engines of half the speed at half the rate.
 */
const TIME_SCALE = 0.5;
/** Normal quantile of the 90 % that an interval is to hold. */
const ERRORS = 1.645;

const window = (seconds: number) => seconds * MICROS_PER_SECOND;
const SPLIT: Design = { kind: "split", windowMicros: window(20), by: "request" };
const SWITCHBACK: Design = { kind: "switchback", windowMicros: window(10), washoutMicros: window(2) };
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
 * Rollouts live, over sockets, before emulated engines, beside what a plan predicts of them: made as an operator makes
 * one, from the trace of an earlier run by the control, with engines that were calibrated on that trace. The truth live
 * is a run of all requests by each profile. Runs that are in the folder are not done again.
 */
export async function live(traces: string, folder: string, only: string | undefined, port: number): Promise<void> {
  mkdirSync(folder, { recursive: true });
  // Several may run at a time.
  const workload = join(folder, `workload-${port}.jsonl`);
  const warmUp = join(folder, `warm-up-${port}.jsonl`);
  await prepareWorkload(CASE, join(traces, CASE.path), workload, SEED);
  writeWarmUp(warmUp, 1);
  const common = { one: CASE, workload, warmUp, folder, port, timeScale: TIME_SCALE, seed: SEED };
  const isAsked = (name: string) =>
    only === "report" ? existsSync(runFile(folder, name)) : (only?.split(",").includes(name) ?? true);
  const profiles = [...new Set(ROLLOUTS.flatMap(({ control, other }) => [control, other]))];
  for (const profile of profiles) {
    if (!isAsked(profile)) continue;
    const run = await kept(folder, profile, () => liveRun({ ...common, profile }));
    const [ttft, e2e] = meansOf(await recordedRunOf(run));
    print(`all by ${profile}: TTFT ${ms(ttft)}, E2E ${ms(e2e)} ${troubles(run.machine).join(", ")}`);
  }
  for (const one of ROLLOUTS) {
    if (!isAsked(one.name)) continue;
    const file = join(folder, `${one.name}.yaml`);
    writeFileSync(file, JSON.stringify(configOf(one)));
    const config = { file, name: one.name };
    const run = await kept(folder, one.name, () => liveRun({ ...common, profile: one.control, config }));
    const before = runFile(folder, one.control);
    if (!existsSync(before)) print(`${one.name}: no plan without a run of all by ${one.control}`);
    else await reported(one, run, JSON.parse(readFileSync(before, "utf8")) as LiveRun);
  }
}

async function reported(one: LiveRollout, run: LiveRun, before: LiveRun): Promise<void> {
  const earlier = await recordedRunOf(before);
  const setting = calibratedSetting(earlier);
  const { designs, shown } = await rolloutStudy({
    setting,
    control: candidateNamed(one.control),
    other: candidateNamed(one.other),
    designs: () => [{ name: one.name, design: one.design, stages: 1 }],
    runs: SIMULATED,
    power: 0.8,
    level: 0.05,
    figure: "e2e.mean",
    hours: [1],
    observed: earlier.observed,
  });
  const items = () => new TraceReader(run.trace).items();
  const control = await recordedControl(items(), one.name);
  if (typeof control === "string") throw new Error(control);
  const recorded = await recordedRunOf(run);
  const judging = { ...setting, workload: recorded.workload, endpoints: recorded.endpoints, fleetEvents: [] };
  const judged = await judgedRollout(control, judging, recorded.requestIds ?? [], items());
  report(one, judged, designs[0]!.figures, shown, troubles(run.machine));
}

function recordedRunOf({ trace }: LiveRun): Promise<RecordedRun> {
  return readRecordedRun(new TraceReader(trace).items());
}

/** Its traffic, and the engine as that trace shows it, with what another run may be off by. */
function calibratedSetting(run: RecordedRun): Setting {
  const { engine: sizes } = loadCalibratedEngine(CASE.engine);
  const evidence = evidenceOf(run, sizes.blockTokens);
  const { engine, residuals } = calibrate(evidence, { sizes, betweenRuns: BETWEEN_RUNS_STATED });
  return recordedSetting(run, { engine, residuals, signals: scrapedEvery(MICROS_PER_SECOND) });
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
  { arms, differences }: JudgedRollout,
  figures: DesignStudy["figures"],
  shown: ShownIntervals,
  troubled: readonly string[],
): void {
  const counts = arms.map(({ tally }) => `${tally.counts.requests} (${tally.counts.failed} failed)`).join(" and ");
  print(`${one.name}: ${one.control} -> ${one.other}, ${counts} ${troubled.join(", ")}`);
  for (const { measured, adjusted } of differences) {
    const { metric, figure } = measured;
    if (metric === "tpot" || figure !== "mean") continue;
    const key = `${metric}.${figure}` as const;
    const { truth, estimate, runError = NaN } = figures[key];
    // What the plan leaves open of what rollouts show in the end, and what one of them differs by from it.
    const { low, high } = shown[key] ?? { low: NaN, high: NaN };
    const from = estimate - Math.hypot(estimate - low, ERRORS * runError);
    const until = estimate + Math.hypot(high - estimate, ERRORS * runError);
    const isInside = from <= measured.mean && measured.mean <= until;
    print(
      `  ${key}: truth ${ms(truth)}, predicted to show ${ms(estimate)} (${ms(from)} to ${ms(until)}), measured ${ms(measured.mean)}, ${isInside ? "inside" : "OUTSIDE"}; ` +
        `adjusted ${ms(adjusted.mean)}, ${(100 * adjusted.varianceLeft).toFixed(0)} % of the variance left, ${measured.count} compared`,
    );
  }
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
