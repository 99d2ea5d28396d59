import type { EngineConfig } from "#engine/config.ts";
import { leastSquares } from "../fit/least-squares.ts";
import type { Evidence } from "./evidence.ts";
import { forcedReplay, tracedReplay } from "./forced-replay.ts";
import { type ModelError, modelErrorOf } from "./model-error.ts";
import { engineWith, OPTIONAL, type Parameter, PARAMETERS, type Parameters, parametersOf } from "./parameters.ts";
import { residualsOf } from "./residuals.ts";
import { startingPoint } from "./starting-point.ts";
import { missingEvidence } from "./missing-evidence.ts";

export interface CalibrateOptions {
  /** Sizes, scheduling and semantics of the engine; its times are replaced. */
  readonly sizes: EngineConfig;
  /** Parameters that are known from elsewhere, in microseconds. */
  readonly fixed?: Partial<Parameters>;
  /** Part of the requests, by arrival, that is fitted; the rest is held out. */
  readonly trainPart?: number;
  /** Requests that are fitted at most: the last ones of the training part would cost time and add little. */
  readonly trainMax?: number;
}

export interface Calibration {
  readonly engine: EngineConfig;
  readonly parameters: Parameters;
  /** Standard error of each parameter that was fitted, in its unit. */
  readonly errors: Partial<Parameters>;
  readonly trained: ModelError;
  readonly heldOut: ModelError;
  readonly heldOutByEndpoint: Readonly<Record<string, ModelError>>;
  readonly evaluations: number;
}

/** A trace that cannot tell what was asked of it: a line for each parameter, with the traffic that would. */
export class CannotIdentify extends Error {
  override readonly name = "CannotIdentify";
  readonly reasons: readonly string[];

  constructor(reasons: readonly string[]) {
    super(reasons.join("\n"));
    this.reasons = reasons;
  }
}

const TRAIN_PART = 0.7;
const TRAIN_MAX = 4000;
/** An optional parameter with a smaller multiple of its standard error is noise. */
const SIGNIFICANT = 4;
/** A parameter whose standard error is worth more than so many per cent of a typical time was not identified. */
const UNSURE_PERCENT_MAX = 15;

/**
 * Fits an engine's step time and the delay outside it: a first estimate from the trace alone, then the replay of the
 * trace on simulated engines against what was seen, in logarithms and robustly. Throws CannotIdentify.
 */
export function calibrate(evidence: Evidence, options: CalibrateOptions): Calibration {
  const { sizes, fixed = {} } = options;
  const { rows } = evidence;
  const split = Math.floor((options.trainPart ?? TRAIN_PART) * rows.length);
  const count = Math.min(split, options.trainMax ?? TRAIN_MAX);
  const missing = missingEvidence(evidence, count, fixed);
  if (missing.length > 0) throw new CannotIdentify(missing);

  const { start, percent } = startingPoint(evidence, count);
  const replayed = replayedWith(evidence, count);
  const fit = (free: readonly Parameter[], from: Parameters) => {
    const at = (x: readonly number[]) =>
      parametersOf((name) => (free.includes(name) ? x[free.indexOf(name)]! : (fixed[name] ?? 0)));
    const found = leastSquares(
      (x) => residualsOf(evidence, tracedReplay(evidence, engineWith(sizes, at(x)), replayed), count, free),
      free.map((name) => from[name]),
    );
    return { ...found, free, parameters: at(found.x) };
  };

  const all = PARAMETERS.filter((name) => fixed[name] === undefined);
  let found = fit(all, start);
  let { evaluations } = found;
  for (;;) {
    const weakest = weakestOf(found.free, found.x, found.errors);
    if (weakest === undefined) break;
    found = fit(
      found.free.filter((name) => name !== weakest),
      found.parameters,
    );
    evaluations += found.evaluations;
  }
  const unsure = found.free.filter(
    (name, j) => !(found.errors[j]! <= UNSURE_PERCENT_MAX * percent[name]) && found.x[j]! > 0,
  );
  if (unsure.length > 0) throw new CannotIdentify(unsure.map(unsureReason));

  const engine = engineWith(sizes, found.parameters);
  const outcome = forcedReplay(evidence, engine);
  return {
    engine,
    parameters: found.parameters,
    errors: Object.fromEntries(found.free.map((name, j) => [name, found.errors[j]!])),
    trained: modelErrorOf(evidence, outcome, (row) => row < count),
    heldOut: modelErrorOf(evidence, outcome, (row) => row >= split),
    heldOutByEndpoint: Object.fromEntries(
      evidence.endpoints.map((endpoint, number) => [
        endpoint,
        modelErrorOf(evidence, outcome, (row) => row >= split && rows[row]!.endpoint === number),
      ]),
    ),
    evaluations,
  };
}

/** Requests to replay so that all that met the first `count` are there: those that came before the last of them ended. */
function replayedWith({ rows }: Evidence, count: number): number {
  let until = 0;
  for (let i = 0; i < count; i++) until = Math.max(until, rows[i]!.arrivalAt + (rows[i]!.e2eMicros || 0));
  let replayed = count;
  while (replayed < rows.length && rows[replayed]!.arrivalAt < until) replayed++;
  return replayed;
}

/** The optional parameter that the trace shows least, if any is not clear of its noise. */
function weakestOf(free: readonly Parameter[], x: readonly number[], errors: readonly number[]): Parameter | undefined {
  let weakest: Parameter | undefined;
  let least = SIGNIFICANT;
  free.forEach((name, j) => {
    if (!OPTIONAL.has(name)) return;
    const clear = x[j]! > 0 ? x[j]! / errors[j]! : 0;
    if (clear >= least) return;
    weakest = name;
    least = clear;
  });
  return weakest;
}

function unsureReason(name: Parameter): string {
  return `${name}: the trace does not tell it from the others; ${TRAFFIC[name]}`;
}

const TRAFFIC: Readonly<Record<Parameter, string>> = {
  delayMicros: "prompts of different lengths at an engine that is mostly idle would",
  baseMicros: "answers while sometimes one and sometimes many requests are in flight would",
  perPrefillTokenMicros: "uncached prompts of different lengths at an engine that is mostly idle would",
  perDecodeMicros: "answers while sometimes one and sometimes many requests are in flight would",
  perPrefillMicros: "short prompts that arrive while others are being answered would",
  perDecodeContextTokenMicros: "answers to short and to long prompts would",
  perPrefillPairMicros: "short and very long prompts would",
};
