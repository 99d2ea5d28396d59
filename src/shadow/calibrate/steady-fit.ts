import { median } from "#core/base/quantile.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import type { CoefficientSpec } from "#engine/step-time/coefficients.ts";
import { type LeastSquaresFit, leastSquares } from "./least-squares.ts";
import { pointKey, type ProtocolPoint } from "./steady-protocol.ts";
import { replaySteady, type SteadyTimes } from "./steady-replay.ts";

/** Means that a client measured at a point. */
export interface SteadyPoint extends ProtocolPoint, SteadyTimes {}

/** What is fitted: an engine's coefficients in microseconds, how many decodes are free, and the time outside the engine. */
export const STEADY_PARAMETERS = [
  "base",
  "prefillToken",
  "prefill",
  "decode",
  "decodesFree",
  "contextToken",
  "prefillPair",
  "delay",
] as const;
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

/** Parameters that residuals are smooth in; of free decodes a few numbers are tried. */
type SmoothParameter = Exclude<SteadyParameter, "decodesFree">;

/** Order of magnitude of each, from which the search starts and by which steps are measured. */
const SCALES: Readonly<Record<SmoothParameter, number>> = {
  base: 5_000,
  prefillToken: 30,
  prefill: 1_000,
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

/** The other scheduling, or decodes that are free, must be so much nearer, as a part of the error. */
const GAIN_MIN = 0.05;
/** Numbers that are tried, up to half of the users of a point: what computes several rows at once has powers of two. */
const DECODES_FREE = [2, 4, 8, 16, 32, 64];
/** Points that are met as well leave nothing to be explained. */
const OFF_NOTED = 0.01;

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
  const own = new SteadySearch(points, sizes);
  const other = new SteadySearch(points, { ...sizes, asyncScheduling: !sizes.asyncScheduling });
  const [ownFound, otherFound] = [own.withAllPaid(), other.withAllPaid()];
  return otherFound.off < (1 - GAIN_MIN) * ownFound.off
    ? { fit: other.fitOf(other.withSomeFree(otherFound)), otherwiseOff: ownFound.off }
    : { fit: own.fitOf(own.withSomeFree(ownFound)), otherwiseOff: otherFound.off };
}

/** Why points cannot be fitted at all. */
export class TooFewPoints extends Error {}

/**
 * Fits coefficients to a few steady points: each is simulated with as many users, and the coefficients are searched that
 * give its two means. Which of them the points separate:
 *
 *   base, decode            two numbers of users
 *   decodesFree             three of them
 *   prefillToken, delay     two prompt lengths
 *   contextToken            two lengths, twice as far apart
 *   prefillPair             three prompt lengths
 *   prefill                 five points, several users with two prompt lengths: what a prompt costs besides its tokens delays
 *                           others' tokens, which time outside the engine does not
 *
 * What they do not is assumed, and named. `near` are parameters that cannot be far off, such as those of most of the points: it
 * takes less time from there. Throws TooFewPoints for one point alone.
 */
export function fitSteady(
  points: readonly SteadyPoint[],
  sizes: EngineConfig,
  near?: Readonly<Record<SteadyParameter, number>>,
): SteadyFit {
  const search = new SteadySearch(points, sizes);
  return search.fitOf(near === undefined ? search.withSomeFree(search.withAllPaid()) : search.near(near));
}

/** Where a search ended: the smooth parameters in scales, and the root of the mean of the squares of how far off it is. */
interface Found {
  readonly x: readonly number[];
  readonly decodesFree: number;
  readonly off: number;
}

class SteadySearch {
  /** As given, of which several may be of one point. */
  readonly #given: readonly SteadyPoint[];
  /** Each once, with the medians of its measurements: a machine that stops for a second is not the engine's. */
  readonly #points: readonly SteadyPoint[];
  readonly #sizes: EngineConfig;
  readonly #assumed: Partial<Record<SteadyParameter, string>> = {};
  readonly #smooth: readonly SmoothParameter[];
  readonly #usersMax: number;

  constructor(points: readonly SteadyPoint[], sizes: EngineConfig) {
    this.#given = points;
    this.#points = [...Map.groupBy(points, pointKey).values()].map((same) => ({
      ...same[0]!,
      ttftMicros: median(same.map(({ ttftMicros }) => ttftMicros)),
      tpotMicros: median(same.map(({ tpotMicros }) => tpotMicros)),
    }));
    this.#sizes = sizes;
    const users = new Set(points.map((point) => point.users));
    const prompts = [...new Set(points.map(({ promptTokens }) => promptTokens))].sort((a, b) => a - b);
    if (points.length < 2 || (users.size < 2 && prompts.length < 2))
      throw new TooFewPoints("expected measurements at two numbers of users, or of two prompt lengths");
    const assumed = this.#assumed;
    if (users.size < 2) assumed.decode = "0: all points have as many users";
    if (users.size < 3) assumed.decodesFree = "0: fewer than three numbers of users";
    if (prompts.length < 2) assumed.delay = `${DELAY_ASSUMED_MICROS} us: all prompts are as long`;
    if (prompts.length < 2 || prompts.at(-1)! < 2 * prompts[0]!) assumed.contextToken = "0: contexts are about as long";
    if (prompts.length < 3) assumed.prefillPair = "0: fewer than three prompt lengths";
    if (!showsPrompts(this.#points)) assumed.prefill = "0: fewer than two prompt lengths with several users";
    this.#smooth = (Object.keys(SCALES) as SmoothParameter[]).filter((name) => assumed[name] === undefined);
    this.#usersMax = Math.max(...users);
  }

  /** From the orders of magnitude. */
  withAllPaid(): Found {
    return this.#searchWith(0, this.#usual(), STEPS);
  }

  /** That, or the nearest with decodes that are free, where it is nearer by more than chance. */
  withSomeFree(paid: Found): Found {
    if (this.#assumed.decodesFree !== undefined || paid.off < OFF_NOTED) return paid;
    const tried = DECODES_FREE.filter((count) => 2 * count <= this.#usersMax).flatMap((count) =>
      [paid.x, this.#usual()].map((from) => this.#searchWith(count, from, STEPS)),
    );
    const best = tried.reduce((a, b) => (b.off < a.off ? b : a), paid);
    return best.off < (1 - GAIN_MIN) * paid.off ? best : paid;
  }

  near(parameters: Readonly<Record<SteadyParameter, number>>): Found {
    const from = this.#smooth.map((name) => parameters[name] / SCALES[name]);
    return this.#searchWith(parameters.decodesFree, from, STEPS.slice(1));
  }

  fitOf({ x, decodesFree, off }: Found): SteadyFit {
    const parameters = this.#parametersOf(x, decodesFree);
    const engine = engineWith(this.#sizes, parameters);
    const times = new Map(this.#timesOf(parameters).map((one, i) => [pointKey(this.#points[i]!), one]));
    const predicted = this.#given.map((point) => times.get(pointKey(point))!);
    return { engine, parameters, assumed: this.#assumed, predicted, off };
  }

  #usual(): number[] {
    return Array<number>(this.#smooth.length).fill(1);
  }

  #searchWith(decodesFree: number, from: readonly number[], steps: readonly number[]): Found {
    const residualsOf = (x: readonly number[]) => this.#residualsOf(x, decodesFree);
    let best: Found = { x: from, decodesFree, off: rootMeanSquare(residualsOf(from)) };
    for (const step of steps) {
      const { x, residuals } = searched(residualsOf, best.x, step);
      const off = rootMeanSquare(residuals);
      if (off < best.off) best = { x, decodesFree, off };
    }
    return best;
  }

  #parametersOf(x: readonly number[], decodesFree: number): Record<SteadyParameter, number> {
    const delay = this.#assumed.delay === undefined ? 0 : DELAY_ASSUMED_MICROS;
    const parameters = { base: 0, prefillToken: 0, prefill: 0, decode: 0, contextToken: 0, prefillPair: 0, delay };
    this.#smooth.forEach((name, i) => (parameters[name] = x[i]! * SCALES[name]));
    return { ...parameters, decodesFree };
  }

  #timesOf(parameters: Readonly<Record<SteadyParameter, number>>): SteadyTimes[] {
    const engine = engineWith(this.#sizes, parameters);
    return this.#points.map((point) => replayPoint(engine, point));
  }

  #residualsOf(x: readonly number[], decodesFree: number): Float64Array {
    return Float64Array.from(
      this.#timesOf(this.#parametersOf(x, decodesFree)).flatMap(({ ttftMicros, tpotMicros }, i) => [
        Math.log(ttftMicros / this.#points[i]!.ttftMicros),
        Math.log(tpotMicros / this.#points[i]!.tpotMicros),
      ]),
    );
  }
}

function rootMeanSquare(residuals: Float64Array): number {
  return Math.sqrt(residuals.reduce((sum, one) => sum + one * one, 0) / residuals.length);
}

/** Fewer do not separate what a prompt costs from the other coefficients. */
const POINTS_MIN_FOR_PROMPTS = 5;

function showsPrompts(points: readonly SteadyPoint[]): boolean {
  const together = new Set(points.filter(({ users }) => users > 1).map(({ promptTokens }) => promptTokens));
  return points.length >= POINTS_MIN_FOR_PROMPTS && together.size > 1;
}

/** The nearest from there, with derivatives by steps of that size. */
function searched(
  residualsOf: (x: readonly number[]) => Float64Array,
  from: readonly number[],
  step: number,
): LeastSquaresFit {
  const search = leastSquares((x) => {
    const residuals = residualsOf(x);
    let jacobian: readonly Float64Array[] | undefined;
    return {
      residuals,
      get jacobian() {
        return (jacobian ??= x.map((value, j) => {
          const moved = residualsOf(x.map((other, k) => (k === j ? value + step : other)));
          return moved.map((residual, i) => (residual - residuals[i]!) / step);
        }));
      },
    };
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
    perPrefillMicros: parameters.prefill,
    perDecodeMicros: parameters.decode,
    decodesFree: parameters.decodesFree,
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
  const { users, requests, promptTokens, outputTokens, pauseMicrosMax } = point;
  const load = { kind: "users", count: users, requests, pauseMicrosMax } as const;
  return replaySteady(engine, load, () => ({ promptTokens, outputTokens, text: undefined }), 0);
}
