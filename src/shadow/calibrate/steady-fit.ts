import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import type { CoefficientSpec } from "#engine/step-time/coefficients.ts";
import { leastSquares } from "./least-squares.ts";
import { replaySteady, type SteadyTimes } from "./steady-replay.ts";

/** Means that a client measured while so many users asked an engine, each again when its answer was complete. */
export interface SteadyPoint extends SteadyTimes {
  readonly users: number;
  readonly requests: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

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
/** Steps of Newton's quotient, in scales. */
const STEP = 0.02;
/** Time outside the engine where the points cannot show it: a vLLM server's on its own machine. */
const DELAY_ASSUMED_MICROS = 5_000;

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
 * What they do not is assumed, and named. Throws TooFewPoints for one point alone.
 */
export function fitSteady(points: readonly SteadyPoint[], sizes: EngineConfig): SteadyFit {
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
  const timesOf = (x: readonly number[]) => {
    const engine = engineWith(sizes, parametersOf(x));
    return points.map((point) => replayPoint(engine, point));
  };
  const residualsOf = (x: readonly number[]) => {
    return Float64Array.from(
      timesOf(x).flatMap(({ ttftMicros, tpotMicros }, i) => [
        Math.log(ttftMicros / points[i]!.ttftMicros),
        Math.log(tpotMicros / points[i]!.tpotMicros),
      ]),
    );
  };
  const search = leastSquares(
    (x) => {
      const residuals = residualsOf(x);
      const jacobian = x.map((value, j) => {
        const moved = residualsOf(x.map((other, k) => (k === j ? value + STEP : other)));
        return moved.map((residual, i) => (residual - residuals[i]!) / STEP);
      });
      return { residuals, jacobian };
    },
    free.map(() => 1),
  );
  let step = search.next();
  while (step.done !== true) step = search.next();
  const { x } = step.value;
  const parameters = parametersOf(x);
  return { engine: engineWith(sizes, parameters), parameters, assumed, predicted: timesOf(x) };
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

/** Prompts are all different, as a measurement's should be. */
function replayPoint(engine: EngineConfig, point: SteadyPoint): SteadyTimes {
  const { users, requests, promptTokens, outputTokens } = point;
  const load = { kind: "users", count: users, requests } as const;
  return replaySteady(engine, load, (number) => ({ promptTokens, outputTokens, text: number }), 0);
}
