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
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { figuresOf } from "#shadow/figure/figures.ts";
import { perform, type ReplicaFigures } from "#shadow/job/job.ts";
import type { Metric } from "#shadow/figure/metric.ts";
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
export const REPLICAS = 20;
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

function settingOf({ engine: base, residuals, source }: Fitted, { run, flags }: NamedRun, seed: number) {
  const { engine } = sizedEngine(base, run, flags, false);
  const here = residualsFor(residuals, source, run.header).residuals;
  return { ...recordedSetting(run, { engine, residuals: here, signals: scrapedEvery(SCRAPE_MICROS) }), seed };
}

/** What what-if answers about the run, beside what happened in it. */
export async function askedOf(fitted: Fitted, target: NamedRun, seed = 1): Promise<readonly Asked[]> {
  const setting = settingOf(fitted, target, seed);
  const inForce = inForceOf(target.run.header, target.run.fleetEvents);
  const { observed } = target.run;
  const answer = await whatIf({ setting, inForce, candidates: [], observed, replicas: REPLICAS, threadsMax: 1 });
  return METRICS.flatMap(([metric]) =>
    FIGURES.flatMap((figure): Asked[] => {
      const covered = answer.coverage?.[metric]?.[figure];
      if (covered === undefined) return [];
      const { low, high, observed: ratio, inside } = covered;
      return [{ metric, figure, error: 1 / ratio - 1, inside, width: high / low }];
    }),
  );
}

/** A figure as the fitted engine alone has it, as each replica does, and as it was. */
export interface Drawn {
  readonly metric: Metric;
  readonly figure: Figure;
  readonly observed: number;
  readonly fitted: number;
  readonly replicas: readonly number[];
}

/** For comparing ways to make one forecast of many simulations. */
export function drawnOf(fitted: Fitted, target: NamedRun, seed = 1): readonly Drawn[] {
  const setting = settingOf(fitted, target, seed);
  const candidate = inForceOf(target.run.header, target.run.fleetEvents);
  const alone = runCandidate(setting, candidate);
  const replicas = Array.from({ length: REPLICAS }, (_, i) =>
    perform(setting, { kind: "replica", candidate, replica: i + 1 }),
  ) as readonly ReplicaFigures[];
  return METRICS.flatMap(([metric]) => {
    const [here, seen] = [figuresOf(alone[metric]), figuresOf(observedColumn(target.run, metric))];
    if (here === undefined || seen === undefined) return [];
    return FIGURES.map((figure): Drawn => {
      const drawn = replicas.flatMap(({ figures }) => figures[metric]?.[figure] ?? []);
      return { metric, figure, observed: seen[figure], fitted: here[figure], replicas: drawn };
    });
  });
}

function observedColumn({ observed }: RecordedRun, metric: Metric): Float64Array {
  return Float64Array.from(observed, ({ ttftMicros, e2eMicros, outputTokens }) => {
    if (metric === "tpotMicros") return outputTokens > 1 ? (e2eMicros - ttftMicros) / (outputTokens - 1) : NaN;
    return metric === "ttftMicros" ? ttftMicros : e2eMicros;
  });
}
