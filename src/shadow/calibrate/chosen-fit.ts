import type { EngineConfig } from "#engine/config.ts";
import type { EngineMemory } from "#engine/engine-memory.ts";
import type { Evidence } from "./evidence.ts";
import { tracedReplay } from "./forced-replay.ts";
import { huberCost, kneeOf, type LeastSquaresFit, leastSquares } from "./least-squares.ts";
import { engineWith, OPTIONAL, type Parameter, PARAMETERS, type Parameters, parametersOf } from "./parameters.ts";
import { residualsOf } from "./residuals.ts";

export interface FitQuestion {
  readonly evidence: Evidence;
  readonly sizes: EngineConfig;
  /** Parameters that are not fitted. */
  readonly given: Partial<Parameters>;
  readonly start: Parameters;
  /** What each parameter must change by to change a typical time by one per cent. */
  readonly percent: Parameters;
  /** Requests that are fitted, the first ones, and those that are replayed with them. */
  readonly count: number;
  readonly replayed: number;
  /** What replays leave to the next one; begins empty. */
  readonly memories: EngineMemory[];
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
  const { evidence, sizes, given, count, replayed, memories } = question;
  const at = (x: readonly number[]) =>
    parametersOf((name) => (free.includes(name) ? x[free.indexOf(name)]! : (given[name] ?? 0)));
  const found = yield* leastSquares(
    (x) => residualsOf(evidence, tracedReplay(evidence, engineWith(sizes, at(x)), replayed, memories), count, free),
    free.map((name) => from[name]),
  );
  return { ...found, free, parameters: at(found.x) };
}
