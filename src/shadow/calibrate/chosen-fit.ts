import type { EngineConfig } from "#engine/config.ts";
import { jobDigest, type ResultMemory } from "../job/result-memory.ts";
import type { Evidence } from "./evidence.ts";
import { tracedReplay } from "./forced-replay.ts";
import { huberCost, kneeOf, type LeastSquaresFit, leastSquares } from "./least-squares.ts";
import { engineWith, OPTIONAL, type Parameter, PARAMETERS, type Parameters, parametersOf } from "./parameters.ts";
import { residualsOf } from "./residuals.ts";
import { speedDrift } from "./run-speeds.ts";

export interface FitQuestion {
  readonly evidence: Evidence;
  readonly sizes: EngineConfig;
  /** Parameters that are not fitted. */
  readonly given: Partial<Parameters>;
  readonly start: Parameters;
  /** What each parameter must change by to change a typical time by one per cent. */
  readonly percent: Parameters;
  /** How fast the engine was in each run; see RunSpeeds. */
  readonly speeds: readonly number[];
  /** Requests that are fitted, the first ones, and those that are replayed with them. */
  readonly count: number;
  readonly replayed: number;
  /** Evaluations of before, and what they are of beside their parameters. */
  readonly known?: KnownEvaluations | undefined;
}

/** What evaluations came to, where they were made before. */
export interface KnownEvaluations {
  readonly memory: ResultMemory;
  /** Digest of what of the evidence is replayed. */
  readonly evidence: string;
}

export interface ChosenFit extends LeastSquaresFit {
  readonly free: readonly Parameter[];
  readonly parameters: Parameters;
}

/** An optional parameter must lower the cost by this part, or it is noise that would be extrapolated. */
const GAIN_MIN = 0.03;

/**
 * Fits what must be there, then adds the optional parameter that explains most, as long as one explains enough. Yields
 * after every evaluation.
 */
export function* chosenFit(question: FitQuestion): Generator<void, ChosenFit> {
  const { given, start, percent } = question;
  const wanted = PARAMETERS.filter((name) => given[name] === undefined);
  let best = yield* fitWith(
    question,
    wanted.filter((name) => !OPTIONAL.has(name)),
    start,
  );
  let { evaluations } = best;
  for (;;) {
    const knee = kneeOf(best.residuals);
    let cost = (1 - GAIN_MIN) * huberCost(best.residuals, knee);
    let better: ChosenFit | undefined;
    for (const name of wanted) {
      if (best.free.includes(name)) continue;
      const free = wanted.filter((one) => one === name || best.free.includes(one));
      const tried = yield* fitWith(
        question,
        free,
        parametersOf((one) => Math.max(best.parameters[one], percent[one])),
      );
      evaluations += tried.evaluations;
      const triedCost = huberCost(tried.residuals, knee);
      if (triedCost >= cost) continue;
      [better, cost] = [tried, triedCost];
    }
    if (better === undefined) return { ...best, evaluations };
    best = better;
  }
}

/** Fits these parameters, from there. Yields after every evaluation. */
export function* fitWith(
  question: FitQuestion,
  free: readonly Parameter[],
  from: Parameters,
): Generator<void, ChosenFit> {
  const { evidence, sizes, given, speeds, count, replayed, known } = question;
  const stepDrift = speedDrift(evidence, speeds);
  const at = (x: readonly number[]) =>
    parametersOf((name) => (free.includes(name) ? x[free.indexOf(name)]! : (given[name] ?? 0)));
  const evaluated = (engine: EngineConfig) =>
    residualsOf(evidence, tracedReplay(evidence, { ...engine, stepDrift }, replayed), count, free, stepDrift);
  const found = yield* leastSquares(
    (x) => {
      const engine = engineWith(sizes, at(x));
      if (known === undefined) return evaluated(engine);
      const key = jobDigest([known.evidence, engine, speeds, count, free]);
      const before = known.memory.get(key) as ReturnType<typeof residualsOf> | undefined;
      if (before !== undefined) return before;
      // What is kept has its derivatives worked out.
      const { residuals, jacobian } = evaluated(engine);
      const result = { residuals, jacobian };
      known.memory.put(key, result);
      return result;
    },
    free.map((name) => from[name]),
  );
  return { ...found, free, parameters: at(found.x) };
}
