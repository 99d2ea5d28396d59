import type { EngineConfig } from "#engine/config.ts";
import type { BetweenRuns, StepDrift, StepResiduals } from "#engine/step-drift.ts";
import { jobDigest, type ResultMemory } from "../job/result-memory.ts";
import { type ChosenFit, chosenFit, fitWith, type KnownEvaluations } from "./chosen-fit.ts";
import type { Evidence } from "./evidence.ts";
import { forcedReplay } from "./forced-replay.ts";
import { type ModelError, modelErrorOf } from "./model-error.ts";
import { engineWith, type Parameter, type Parameters, parametersOf } from "./parameters.ts";
import { runSpeeds, speedDrift } from "./run-speeds.ts";
import { startingPoint } from "./starting-point.ts";
import { huberCost, kneeOf } from "./least-squares.ts";
import { missingEvidence, seenLightly } from "./missing-evidence.ts";
import { stepResidualsOf } from "./step-residuals.ts";

export interface CalibrateOptions {
  /** Sizes, scheduling and semantics of the engine; its times are replaced. */
  readonly sizes: EngineConfig;
  /** Parameters that are known from elsewhere, in microseconds. */
  readonly fixed?: Partial<Parameters>;
  /** Part of the requests, by arrival, that is fitted and judged by the rest; what is shipped is fitted on all. */
  readonly trainPart?: number;
  /** What another run of the engine is off by, where the evidence is of one; left out for use in that run alone. */
  readonly betweenRuns?: BetweenRuns;
  /** Evaluations that were made before are not made again. */
  readonly memory?: ResultMemory | undefined;
}

export interface Calibration {
  /** Fitted on all requests, once the same way of fitting was judged on those held out. */
  readonly engine: EngineConfig;
  readonly parameters: Parameters;
  /** Standard error of each parameter that was fitted, in its unit. */
  readonly errors: Partial<Parameters>;
  /** Where the fit must not be trusted. */
  readonly caveats: readonly string[];
  /** Of a fit on the first part, on that part and on the rest. */
  readonly trained: ModelError;
  readonly heldOut: ModelError;
  readonly heldOutByEndpoint: Readonly<Record<string, ModelError>>;
  readonly evaluations: number;
  /** What is left to chance, for the intervals of predictions; undefined where the trace is too short. */
  readonly residuals: StepResiduals | undefined;
}

/** A trace that does not identify what was asked of it: a line for each parameter, with the traffic that would. */
export class CannotIdentify extends Error {
  override readonly name = "CannotIdentify";
  readonly reasons: readonly string[];

  constructor(reasons: readonly string[]) {
    super(reasons.join("\n"));
    this.reasons = reasons;
  }
}

const TRAIN_PART = 0.7;
/** Requests that are fitted at most: the last ones of the training part would cost time and add little. */
const TRAIN_MAX = 2000;
/** Part of the requests that must have found their engine with little to do. */
const LIGHT_PART_MIN = 0.04;
/** A parameter whose standard error is worth more than so many per cent of a typical time was not identified. */
const UNSURE_PERCENT_MAX = 15;

/**
 * Fits an engine's step time and the delay outside it: a first estimate from the trace alone, then the replay of the
 * trace on simulated engines against what was seen, in logarithms and robustly. Throws CannotIdentify.
 */
export function calibrate(evidence: Evidence, options: CalibrateOptions): Calibration {
  return inOneGo(calibrateInSteps(evidence, options));
}

/** What comes of work that yields, without its pauses. */
export function inOneGo<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Requests of `evidence` that are held out, from the first one on. */
export function heldOutFrom(
  { rows }: Evidence,
  { trainPart = TRAIN_PART }: Pick<CalibrateOptions, "trainPart">,
): number {
  return Math.floor(trainPart * rows.length);
}

/** The same, yielding after every replay of the trace: the longest that it goes without a pause. */
export function* calibrateInSteps(evidence: Evidence, options: CalibrateOptions): Generator<void, Calibration> {
  const { sizes, fixed = {} } = options;
  const { rows } = evidence;
  const split = heldOutFrom(evidence, options);
  const count = Math.min(split, TRAIN_MAX);
  const missing = missingEvidence(evidence, count, fixed);
  if (missing.length > 0) throw new CannotIdentify(missing);

  const { found, lightly, speeds: first } = yield* fitOf(evidence, options, count);
  const replayed = (parameters: Parameters) => (stepDrift: StepDrift | undefined) =>
    forcedReplay(evidence, { ...engineWith(sizes, parameters), stepDrift });
  const judged = replayed(found.parameters)(speedDrift(evidence, first));
  const heldOut = modelErrorOf(evidence, judged, (row) => row >= split);
  yield;
  const { levels: speeds } = runSpeeds(evidence, replayed(found.parameters), first);
  yield;
  const refit = yield* fitOnAll(evidence, options, found, speeds);
  const { parameters } = refit;
  const engine = engineWith(sizes, parameters);
  const errors = Object.fromEntries(refit.free.map((name, j) => [name, refit.errors[j]!]));
  return {
    engine,
    parameters,
    caveats: lightly ? [] : [NEVER_LIGHT],
    errors,
    trained: modelErrorOf(evidence, judged, (row) => row < count),
    heldOut,
    heldOutByEndpoint: Object.fromEntries(
      evidence.endpoints.map((endpoint, number) => [
        endpoint,
        modelErrorOf(evidence, judged, (row) => row >= split && rows[row]!.endpoint === number),
      ]),
    ),
    evaluations: found.evaluations + refit.evaluations,
    residuals: stepResidualsOf(evidence, {
      parameters,
      errors,
      heldOutError: Math.log(1 + (heldOut.e2eMicros?.meanRelative ?? NaN)),
      betweenRuns: options.betweenRuns,
      speeds,
      replayed: replayed(parameters),
    }),
  };
}

/** A fit of the first `count` requests. Throws CannotIdentify. */
function* fitOf(
  evidence: Evidence,
  { sizes, fixed = {}, memory }: CalibrateOptions,
  count: number,
): Generator<void, { readonly found: ChosenFit; readonly lightly: boolean; readonly speeds: readonly number[] }> {
  const { start, percent, speeds } = startingPoint(evidence, count);
  const lightly = seenLightly(evidence, count) >= LIGHT_PART_MIN * count;
  const replayed = replayedWith(evidence, count);
  const question = {
    evidence,
    sizes,
    given: fixed,
    start,
    percent,
    speeds,
    count,
    replayed,
    known: knownOf(evidence, replayed, memory),
  };
  let found = yield* chosenFit(question);
  // Under a queue a long delay is only another way to put what the model does not hold.
  if (!lightly && found.parameters.delayMicros > found.parameters.baseMicros)
    found = yield* chosenFit({ ...question, given: { delayMicros: 0, ...fixed } });
  const unsure = found.free.filter(
    (name, j) => found.x[j]! > 0 && !(found.errors[j]! <= UNSURE_PERCENT_MAX * percent[name]),
  );
  if (unsure.length > 0) throw new CannotIdentify(unsure.map(unsureReason));
  return { found, lightly, speeds };
}

/** The same parameters, fitted on all requests: from where the first part had them and anew, whichever is nearer. */
function* fitOnAll(
  evidence: Evidence,
  { sizes, fixed = {}, memory }: CalibrateOptions,
  judged: ChosenFit,
  speeds: readonly number[],
): Generator<void, ChosenFit> {
  const count = Math.min(evidence.rows.length, TRAIN_MAX);
  const given = {
    ...fixed,
    ...(judged.free.includes("delayMicros") ? {} : { delayMicros: judged.parameters.delayMicros }),
  };
  const replayed = replayedWith(evidence, count);
  const question = {
    evidence,
    sizes,
    given,
    start: judged.parameters,
    percent: judged.parameters,
    speeds,
    count,
    replayed,
    known: knownOf(evidence, replayed, memory),
  };
  const near = yield* fitWith(question, judged.free, judged.parameters);
  const { start, percent } = startingPoint(evidence, count);
  const far = yield* fitWith(
    question,
    judged.free,
    parametersOf((name) => Math.max(start[name], percent[name])),
  );
  const knee = kneeOf(near.residuals);
  const best = huberCost(far.residuals, knee) < huberCost(near.residuals, knee) ? far : near;
  const all = { ...best, evaluations: near.evaluations + far.evaluations };
  return all.free.every((_, j) => Number.isFinite(all.x[j]!)) ? all : { ...judged, evaluations: all.evaluations };
}

function knownOf(
  { endpoints, rows, laterRunsAt = [] }: Evidence,
  replayed: number,
  memory: ResultMemory | undefined,
): KnownEvaluations | undefined {
  if (memory === undefined) return undefined;
  const own = rows.slice(0, replayed).map((row) => jobDigest(row));
  return { memory, evidence: jobDigest([endpoints, laterRunsAt, own]) };
}

/** Requests to replay so that all that met the first `count` are there: those that came before the last of them ended. */
function replayedWith({ rows }: Evidence, count: number): number {
  let until = 0;
  for (let i = 0; i < count; i++) until = Math.max(until, rows[i]!.arrivalAt + (rows[i]!.e2eMicros || 0));
  let replayed = count;
  while (replayed < rows.length && rows[replayed]!.arrivalAt < until) replayed++;
  return replayed;
}

function unsureReason(name: Parameter): string {
  return `${name}: the trace does not separate it from the others; ${TRAFFIC[name]}`;
}

const NEVER_LIGHT =
  "Hardly a request found its engine with little to do: the delay outside it and what a step takes at least are " +
  "guesses. Trust this under load only; a trace with quiet minutes would show them.";

const TRAFFIC: Readonly<Record<Parameter, string>> = {
  delayMicros: "prompts of different lengths at an engine that is mostly idle would",
  baseMicros: "answers while sometimes one and sometimes many requests are in flight would",
  perPrefillTokenMicros: "uncached prompts of different lengths at an engine that is mostly idle would",
  perDecodeMicros: "answers while sometimes one and sometimes many requests are in flight would",
  perPrefillMicros: "short prompts that arrive while others are being answered would",
  perDecodeContextTokenMicros: "answers to short and to long prompts would",
  perPrefillPairMicros: "short and very long prompts would",
};
