import type { EngineConfig } from "#engine/config.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import type { EngineSource } from "#engine/engine-source.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import { sizedEngine, type SizeFlags } from "#cli/calibrate/engine-sizes.ts";
import { engineDefaults } from "#engine/config.ts";
import { BETWEEN_RUNS_STATED } from "#shadow/recorded/between-runs.ts";
import { calibrate, CannotIdentify } from "#shadow/calibrate/calibrate.ts";
import { type Evidence, evidenceOf } from "#shadow/calibrate/evidence.ts";
import { joinedRuns } from "#shadow/calibrate/joined-runs.ts";
import { seenSpeed } from "#shadow/calibrate/seen-speed.ts";
import { runCandidate, type Setting } from "#shadow/candidate/candidate.ts";
import { figuresOf } from "#shadow/figure/figures.ts";
import { perform, type ReplicaFigures } from "#shadow/job/job.ts";
import type { Metric } from "#shadow/figure/metric.ts";
import { estimateOf } from "#shadow/candidate/estimate.ts";
import { backlogOf } from "#shadow/figure/backlog.ts";
import type { Interval } from "#shadow/figure/interval.ts";
import { FIGURES, type Figure } from "#shadow/question/uncertainty.ts";
import { whatIf } from "#shadow/question/what-if.ts";
import { residualsFor, sourceRunOf } from "#shadow/recorded/engine-origin.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import { inForceOf } from "#shadow/candidate/in-force.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";

export const METRICS: readonly (readonly [Metric, string])[] = [
  ["ttftMicros", "TTFT"],
  ["tpotMicros", "TPOT"],
  ["e2eMicros", "E2E"],
];
export const REPLICAS = 40;
const SCRAPE_MICROS = 1_000_000;

export interface NamedRun {
  readonly name: string;
  readonly run: RecordedRun;
  readonly flags: SizeFlags;
}

/** What an engine file would hold. */
export interface Fitted {
  readonly engine: EngineConfig;
  readonly residuals: StepResiduals | undefined;
  readonly source: EngineSource;
}

/** One figure of a run: predicted over observed, and the interval around the prediction over the prediction. */
export interface Asked {
  readonly metric: Metric;
  readonly figure: Figure;
  /** predicted / observed - 1 */
  readonly error: number;
  readonly inside: boolean;
  /** Upper over lower end. */
  readonly width: number;
  /** The candidate's times to the first token are reported as not knowable: its backlog stands in their place. */
  readonly isChaotic: boolean;
}

/** What was asked of a run, with what became of its queue where that stands for times to the first token. */
export interface Answered {
  readonly asked: readonly Asked[];
  readonly backlog: { readonly growthInside: boolean; readonly drainInside: boolean } | undefined;
}

/** What calibrate asks to be equal of runs that it fits together. */
export function sizesOf({ run, flags }: NamedRun): string {
  const { engine } = sizedEngine(engineDefaults(), run, flags, true);
  const { blockTokens, kvBlocks, sequencesMax, batchTokensMax, asyncScheduling, dataParallel } = engine;
  return [blockTokens, kvBlocks, sequencesMax, batchTokensMax, asyncScheduling, dataParallel].join();
}

/** Fits one engine to runs, as calibrate does; why not, where it cannot be. */
export function fittedTo(runs: readonly NamedRun[]): Fitted | string {
  const sized = runs.map(({ run, flags }) => {
    const { engine } = sizedEngine(engineDefaults(), run, flags, true);
    return { engine, evidence: evidenceOf(run, engine.blockTokens) };
  });
  try {
    const evidence = joinedRuns(sized.map((one) => one.evidence) as [Evidence, ...Evidence[]]);
    const { engine, residuals } = calibrate(evidence, { sizes: sized[0]!.engine, betweenRuns: BETWEEN_RUNS_STATED });
    return { engine, residuals, source: { runs: runs.map(({ run }) => sourceRunOf(run.header)) } };
  } catch (error) {
    if (error instanceof CannotIdentify) return error.reasons[0]!.split(":")[0]!;
    throw error;
  }
}

function settingOf({ engine: base, residuals, source }: Fitted, { run, flags }: NamedRun, how: How): Setting {
  const { engine } = sizedEngine(base, run, flags, false);
  const seen = () =>
    how.speed === "trace" && residuals !== undefined
      ? seenSpeed(evidenceOf(run, engine.blockTokens), engine)
      : undefined;
  const here = residualsFor(residuals, source, run.header, seen).residuals;
  const noiseSeed = how.seed ?? 1;
  return { ...recordedSetting(run, { engine, residuals: here, signals: scrapedEvery(SCRAPE_MICROS) }), noiseSeed };
}

/** How a question is asked: the seed of what replicas draw, and whether the run's own answers show its speed. */
export interface How {
  readonly seed?: number;
  readonly speed?: "trace" | "engine";
}

/** What what-if answers about the run, beside what happened in it. */
export async function answeredOf(fitted: Fitted, target: NamedRun, how: How = {}): Promise<Answered> {
  const setting = settingOf(fitted, target, how);
  const inForce = inForceOf(target.run.header, target.run.fleetEvents);
  const { observed, workload } = target.run;
  const answer = await whatIf({ setting, inForce, candidates: [], observed, replicas: REPLICAS, threadsMax: 1 });
  const [{ backlog } = { backlog: undefined }] = answer.candidates;
  const asked = METRICS.flatMap(([metric]) =>
    FIGURES.flatMap((figure): Asked[] => {
      const covered = answer.coverage?.[metric]?.[figure];
      if (covered === undefined) return [];
      const { low, high, observed: ratio, inside } = covered;
      const isChaotic = backlog !== undefined && metric === "ttftMicros";
      return [{ metric, figure, error: 1 / ratio - 1, inside, width: high / low, isChaotic }];
    }),
  );
  const seen = backlogOf(
    Float64Array.from(workload, ({ arrivalMicros }) => arrivalMicros),
    observedColumn(target.run, "ttftMicros"),
    observedColumn(target.run, "e2eMicros"),
  );
  if (backlog === undefined || seen === undefined) return { asked, backlog: undefined };
  const within = (value: number, { low, high }: Interval) => value >= low && value <= high;
  return {
    asked,
    backlog: {
      growthInside: within(seen.growth, backlog.growthInterval),
      drainInside: within(seen.drainMicros, backlog.drainInterval),
    },
  };
}

/** Its figures alone. */
export async function askedOf(fitted: Fitted, target: NamedRun, how: How = {}): Promise<readonly Asked[]> {
  return (await answeredOf(fitted, target, how)).asked;
}

/** Requests waited in a queue: their mean time to the first token is far above that of the quickest tenth. */
export function isSaturated({ observed }: RecordedRun): boolean {
  const times = observed.flatMap(({ ok, ttftMicros }) => (ok ? [ttftMicros] : [])).sort((a, b) => a - b);
  const mean = times.reduce((sum, micros) => sum + micros, 0) / times.length;
  return mean > SATURATED * times[Math.floor(times.length / 10)]!;
}

const SATURATED = 5;

/** A figure as the fitted engine alone has it, as each replica does, and as it was. */
export interface Drawn {
  readonly metric: Metric;
  readonly figure: Figure;
  readonly observed: number;
  readonly estimate: number;
  readonly fitted: number;
  readonly replicas: readonly number[];
}

/** For comparing ways to make one forecast of many simulations. */
export function drawnOf(fitted: Fitted, target: NamedRun, how: How = {}): readonly Drawn[] {
  const setting = settingOf(fitted, target, how);
  const candidate = inForceOf(target.run.header, target.run.fleetEvents);
  const alone = runCandidate({ ...setting, residuals: undefined }, candidate);
  const estimates = estimateOf(runCandidate(setting, candidate), setting.residuals);
  const replicas = Array.from({ length: REPLICAS }, (_, i) =>
    perform(setting, { kind: "replica", candidate, replica: i + 1 }),
  ) as readonly ReplicaFigures[];
  return METRICS.flatMap(([metric]) => {
    const [here, seen] = [figuresOf(alone[metric]), figuresOf(observedColumn(target.run, metric))];
    const estimate = estimates[metric];
    if (here === undefined || seen === undefined || estimate === undefined) return [];
    return FIGURES.map((figure): Drawn => {
      const drawn = replicas.flatMap(({ figures }) => figures[metric]?.[figure] ?? []);
      return {
        metric,
        figure,
        observed: seen[figure],
        estimate: estimate[figure],
        fitted: here[figure],
        replicas: drawn,
      };
    });
  });
}

function observedColumn({ observed }: RecordedRun, metric: Metric): Float64Array {
  return Float64Array.from(observed, ({ ttftMicros, e2eMicros, outputTokens }) => {
    if (metric === "tpotMicros") return outputTokens > 1 ? (e2eMicros - ttftMicros) / (outputTokens - 1) : NaN;
    return metric === "ttftMicros" ? ttftMicros : e2eMicros;
  });
}
