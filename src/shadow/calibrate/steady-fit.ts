import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { EngineMemory } from "#engine/engine-memory.ts";
import type { CoefficientSpec } from "#engine/step-time/coefficients.ts";
import { type LeastSquaresFit, leastSquares } from "./least-squares.ts";
import type { ProtocolPoint } from "./steady-protocol.ts";
import { replaySteady, type SteadyTimes } from "./steady-replay.ts";

/** Means that a client measured at a point. */
export interface SteadyPoint extends ProtocolPoint, SteadyTimes {}

/** What is fitted: an engine's coefficients in microseconds, and the time outside it. */
export const STEADY_PARAMETERS = ["base", "prefillToken", "decode", "contextToken", "prefillPair", "delay"] as const;
export type SteadyParameter = (typeof STEADY_PARAMETERS)[number];

export interface SteadyFit {
  readonly engine: EngineConfig;
  readonly parameters: Readonly<Record<SteadyParameter, number>>;
  /** Not separable from the others by these points, with the value that was taken, and why. */
  readonly assumed: Readonly<Partial<Record<SteadyParameter, string>>>;
  /** Of each point, as the fitted engine has it. */
  readonly predicted: readonly SteadyTimes[];
  /** Root of the mean of the squares of how far off they are, as logarithms. */
  readonly off: number;
}

/** Order of magnitude of each, from which the search starts and by which steps are measured. */
const SCALES: Readonly<Record<SteadyParameter, number>> = {
  base: 5_000,
  prefillToken: 30,
  decode: 50,
  contextToken: 0.05,
  prefillPair: 0.001,
  delay: 5_000,
};
/**
 * Steps of Newton's quotient, in scales. What a small one changes is often who happens to share a step, which stops a search
 * far from its end: the wide one goes first.
 */
const STEPS = [0.3, 0.1, 0.02];
/** Time outside the engine where the points cannot show it: a vLLM server's on its own machine. */
const DELAY_ASSUMED_MICROS = 5_000;

/** The other scheduling must be so much nearer, as a part of the error, or the engine's own is kept. */
const GAIN_MIN = 0.05;

/** A fit where nobody stated how the engine composes its steps, and how far off the other way is. */
export interface FoundSteadyFit {
  readonly fit: SteadyFit;
  readonly otherwiseOff: number;
}

/**
 * Fits with async scheduling and without, and has what is nearer to the points: with it who asks while others are answered
 * waits for up to two steps, and without it for one. Throws TooFewPoints.
 */
export function fitSteadyUnstated(points: readonly SteadyPoint[], sizes: EngineConfig): FoundSteadyFit {
  const own = fitSteady(points, sizes);
  const other = fitSteady(points, { ...sizes, asyncScheduling: !sizes.asyncScheduling });
  return other.off < (1 - GAIN_MIN) * own.off
    ? { fit: other, otherwiseOff: own.off }
    : { fit: own, otherwiseOff: other.off };
}

/** Why points cannot be fitted at all. */
export class TooFewPoints extends Error {}

/**
 * Fits coefficients to a few steady points: each is simulated with as many users, and the coefficients are searched that
 * give its two means. Which of them the points separate:
 *
 *   base, decode            two numbers of users
 *   prefillToken, delay     two prompt lengths
 *   contextToken            two lengths, twice as far apart
 *   prefillPair             three prompt lengths
 *
 * What they do not is assumed, and named. `near` are parameters that cannot be far off, such as those of most of the points: it
 * takes less time from there. Throws TooFewPoints for one point alone.
 */
export function fitSteady(
  points: readonly SteadyPoint[],
  sizes: EngineConfig,
  near?: Readonly<Record<SteadyParameter, number>>,
): SteadyFit {
  const users = new Set(points.map((point) => point.users)).size;
  const prompts = [...new Set(points.map(({ promptTokens }) => promptTokens))].sort((a, b) => a - b);
  if (points.length < 2 || (users < 2 && prompts.length < 2))
    throw new TooFewPoints("expected measurements at two numbers of users, or of two prompt lengths");
  const assumed: Partial<Record<SteadyParameter, string>> = {};
  if (users < 2) assumed.decode = "0: all points have as many users";
  if (prompts.length < 2) assumed.delay = `${DELAY_ASSUMED_MICROS} us: all prompts are as long`;
  if (prompts.length < 2 || prompts.at(-1)! < 2 * prompts[0]!) assumed.contextToken = "0: contexts are about as long";
  if (prompts.length < 3) assumed.prefillPair = "0: fewer than three prompt lengths";
  const free = STEADY_PARAMETERS.filter((name) => assumed[name] === undefined);
  const parametersOf = (x: readonly number[]): Record<SteadyParameter, number> => {
    const parameters = { base: 0, prefillToken: 0, decode: 0, contextToken: 0, prefillPair: 0, delay: 0 };
    if (assumed.delay !== undefined) parameters.delay = DELAY_ASSUMED_MICROS;
    free.forEach((name, i) => (parameters[name] = x[i]! * SCALES[name]));
    return parameters;
  };
  const memory = new EngineMemory();
  const timesOf = (x: readonly number[]) => {
    const engine = engineWith(sizes, parametersOf(x));
    const once = new Map<string, SteadyTimes>();
    return points.map((point) => once.getOrInsertComputed(keyOf(point), () => replayPoint(engine, point, memory)));
  };
  const residualsOf = (x: readonly number[]) => {
    return Float64Array.from(
      timesOf(x).flatMap(({ ttftMicros, tpotMicros }, i) => [
        Math.log(ttftMicros / points[i]!.ttftMicros),
        Math.log(tpotMicros / points[i]!.tpotMicros),
      ]),
    );
  };
  const costOf = (residuals: Float64Array) => residuals.reduce((sum, one) => sum + one * one, 0);
  let x: readonly number[] = free.map((name) => (near === undefined ? 1 : near[name] / SCALES[name]));
  let residuals: Float64Array = residualsOf(x);
  for (const step of near === undefined ? STEPS : STEPS.slice(1)) {
    const found = searched(residualsOf, x, step);
    if (costOf(found.residuals) >= costOf(residuals)) continue;
    ({ x, residuals } = found);
  }
  const parameters = parametersOf(x);
  const off = Math.sqrt(costOf(residuals) / residuals.length);
  return { engine: engineWith(sizes, parameters), parameters, assumed, predicted: timesOf(x), off };
}

/** The nearest from there, with derivatives by steps of that size. */
function searched(
  residualsOf: (x: readonly number[]) => Float64Array,
  from: readonly number[],
  step: number,
): LeastSquaresFit {
  const search = leastSquares((x) => {
    const residuals = residualsOf(x);
    const jacobian = x.map((value, j) => {
      const moved = residualsOf(x.map((other, k) => (k === j ? value + step : other)));
      return moved.map((residual, i) => (residual - residuals[i]!) / step);
    });
    return { residuals, jacobian };
  }, from);
  let next = search.next();
  while (next.done !== true) next = search.next();
  return next.value;
}

function engineWith(sizes: EngineConfig, parameters: Readonly<Record<SteadyParameter, number>>): EngineConfig {
  const stepTime: CoefficientSpec = {
    kind: "coefficients",
    baseMicros: parameters.base,
    perPrefillTokenMicros: parameters.prefillToken,
    perDecodeMicros: parameters.decode,
    perDecodeContextTokenMicros: parameters.contextToken,
    perPrefillPairMicros: parameters.prefillPair,
  };
  return engineDefaults({
    ...sizes,
    stepTime,
    stepGap: { baseMicros: 0, afterPrefillMicros: 0, perDecodeMicros: 0 },
    queueDelay: { baseMicros: parameters.delay, perPromptTokenMicros: 0 },
  });
}

/** Measurements of one point are simulated once. */
function keyOf({ users, requests, promptTokens, outputTokens, pauseMicrosMax }: ProtocolPoint): string {
  return [users, requests, promptTokens, outputTokens, pauseMicrosMax].join();
}

/** Prompts are all different, as a measurement's should be. */
function replayPoint(engine: EngineConfig, point: SteadyPoint, memory: EngineMemory): SteadyTimes {
  const { users, requests, promptTokens, outputTokens, pauseMicrosMax } = point;
  const load = { kind: "users", count: users, requests, pauseMicrosMax } as const;
  return replaySteady(engine, load, () => ({ promptTokens, outputTokens, text: undefined }), 0, memory);
}
