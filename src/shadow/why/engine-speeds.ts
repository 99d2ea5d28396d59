import { median } from "#core/base/quantile.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { Setting } from "#shadow/candidate/candidate.ts";
import { usualLevel } from "#shadow/candidate/usual-level.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { GoldenSearch } from "./golden-search.ts";
import { isCloser, type Misses, missesOf, type Slowness } from "./misses.ts";
import { type EngineRatios, ratiosOf, type SimulatedTimes } from "./observed-ratios.ts";

/** How fast the endpoints of a setting are, by their places. */
export interface EngineSpeeds {
  readonly residuals: StepResiduals | undefined;
  /** Times that a prompt token takes longer there, beyond what steps do. */
  readonly prefill: readonly number[];
}

export interface SlowEngine {
  readonly endpoint: string;
  /** Times as long as the fleet's: of a step, and of a prompt token beyond that. */
  readonly factor: number;
  readonly prefillFactor: number;
}

/** Engines that are slower than the fleet. */
export interface SlowEngines {
  readonly engines: readonly SlowEngine[];
  /** Of the setting, each endpoint as slow as it was, or all of them like the fleet. */
  readonly speeds: (isEven: boolean) => EngineSpeeds;
}

/** Below that an engine counts as the fleet's. */
const SLOW_FACTOR_MIN = 1.08;
const SLOW_PREFILL_FACTOR_MIN = 1.3;
const SLOW_FACTOR_MAX = 8;
/** From there on it is looked at. */
const LOOK_FACTOR_MIN = 1.04;
/** So many standard errors. */
const ERRORS_MIN = 4;
const BETTER_ERRORS_MIN = 3;
const BETTER_THAN_ONE_MIN = 2;
/** Simulations to find one factor. */
const TRIES = 10;
/** One of engines like the fleet; each factor, each beside the other, and both once more. */
export const SIMULATIONS_MAX = 1 + 6 * TRIES;

/** A slowness that was tried, and what was seen beside it. */
interface Tried extends Slowness {
  readonly misses: Misses;
}

const LIKE_FLEET: Slowness = { steps: 0, prompts: 0 };

/**
 * Finds engines that are slower than the fleet, beside simulations in which requests go where they went: those whose first
 * tokens and answers, beside the fleet's, come closer to what was observed with a factor on their steps, on their prompt
 * tokens, or on both. Factors are tried for all engines in the same simulations, a step before each; `run` simulates.
 */
export function* slowEngines(
  setting: Setting,
  observed: readonly Observed[],
  run: (speeds: EngineSpeeds) => SimulatedTimes,
  computesOwnPrompts: boolean,
): Generator<void, SlowEngines | undefined> {
  const { endpoints } = setting;
  const own = endpoints.map((_, place) => ownLevel(setting.residuals, place));
  const study = new SpeedStudy(setting, observed, run, computesOwnPrompts);
  yield;
  const even = study.look(endpoints.map(() => LIKE_FLEET));
  if (even.filter(({ isKnown }) => isKnown).length < 2) return undefined;
  const fleet = fleetOf(even);
  const suspects = even.flatMap((one, place) => (isSuspect(one, fleet) ? [place] : []));
  const found = yield* study.search(suspects, even, fleet);
  const whole = own.map((level, place) => level + (found.get(place)?.steps ?? 0));
  const usual = median(own);
  const slower = whole.map((level, place) => {
    const beyond = level - median(whole);
    const least = found.has(place) ? 0 : ERRORS_MIN * even[place]!.answers.error;
    return beyond >= Math.max(Math.log(SLOW_FACTOR_MIN), least) ? beyond : 0;
  });
  const prompts = endpoints.map((_, place) => found.get(place)?.prompts ?? 0);
  if ([...slower, ...prompts].every((level) => level === 0)) return undefined;
  // An engine that is not slower is left as the setting has it, and so is how fast all are together.
  const fleetLevels = slower.map((level, place) => (level === 0 ? 0 : usual - own[place]!));
  const levels = slower.map((level, place) => fleetLevels[place]! + level);
  const factors = prompts.map(Math.exp);
  return {
    engines: endpoints.flatMap(({ id }, place) => {
      const [factor, prefillFactor] = [Math.exp(slower[place]!), factors[place]!];
      return factor === 1 && prefillFactor === 1 ? [] : [{ endpoint: id, factor, prefillFactor }];
    }),
    speeds: (isEven) => ({
      residuals: withLevels(setting.residuals, isEven ? fleetLevels : levels),
      prefill: isEven ? factors.map(() => 1) : factors,
    }),
  };
}

/** Simulates a setting with engines of other speeds, and compares with what was observed. */
class SpeedStudy {
  readonly #setting: Setting;
  readonly #observed: readonly Observed[];
  readonly #run: (speeds: EngineSpeeds) => SimulatedTimes;
  readonly #computesOwnPrompts: boolean;

  constructor(
    setting: Setting,
    observed: readonly Observed[],
    run: (speeds: EngineSpeeds) => SimulatedTimes,
    computesOwnPrompts: boolean,
  ) {
    this.#setting = setting;
    this.#observed = observed;
    this.#run = run;
    this.#computesOwnPrompts = computesOwnPrompts;
  }

  /** Of each endpoint, with these speeds. */
  look(speeds: readonly Slowness[]): EngineRatios[] {
    const times = this.#run({
      residuals: withLevels(
        this.#setting.residuals,
        speeds.map(({ steps }) => steps),
      ),
      prefill: speeds.map(({ prompts }) => Math.exp(prompts)),
    });
    return ratiosOf(this.#setting, this.#observed, times, this.#computesOwnPrompts);
  }

  /** Of the endpoints at these places those that are slower, and by how much. */
  *search(
    suspects: readonly number[],
    even: readonly EngineRatios[],
    fleet: Slowness,
  ): Generator<void, ReadonlyMap<number, Slowness>> {
    if (suspects.length === 0) return new Map();
    const asIs = new Map(
      suspects.map((place) => [place, { ...LIKE_FLEET, misses: missesOf(even[place]!.requests, fleet) }]),
    );
    const steps = yield* this.#best(asIs, "steps", fleet);
    const prompts = this.#hasPromptTime() ? yield* this.#best(asIs, "prompts", fleet) : steps;
    const single = bestOf(steps, prompts);
    const both = this.#hasPromptTime() ? yield* this.#both(single, fleet) : single;
    return new Map(
      suspects.flatMap((place): [number, Slowness][] => {
        const [none, one, two] = [asIs.get(place)!, single.get(place)!, both.get(place)!];
        const chosen = isCloser(two.misses, one.misses, BETTER_THAN_ONE_MIN) ? two : one;
        const slowness = beyondChance(chosen);
        const isSlow = slowness.steps > 0 || slowness.prompts > 0;
        return isSlow && isCloser(chosen.misses, none.misses, BETTER_ERRORS_MIN) ? [[place, slowness]] : [];
      }),
    );
  }

  /** From the better single factor on: the other one, and then the first once more. */
  *#both(single: ReadonlyMap<number, Tried>, fleet: Slowness): Generator<void, ReadonlyMap<number, Tried>> {
    const ofSteps = new Map([...single].filter(([, { steps }]) => steps > 0));
    const ofPrompts = new Map([...single].filter(([, { steps }]) => steps === 0));
    const more = new Map([
      ...(yield* this.#best(ofSteps, "prompts", fleet)),
      ...(yield* this.#best(ofPrompts, "steps", fleet)),
    ]);
    const isTwo = ([, { steps, prompts }]: [number, Tried]) => steps > 0 && prompts > 0;
    const again = new Map([...more].filter(isTwo));
    const first = yield* this.#best(again, "steps", fleet);
    const last = yield* this.#best(first, "prompts", fleet);
    return new Map([...more].map(([place, one]) => [place, last.get(place) ?? one]));
  }

  /** Each with the best of one factor, as far as one is better than what it has. */
  *#best(
    from: ReadonlyMap<number, Tried>,
    which: keyof Slowness,
    fleet: Slowness,
  ): Generator<void, ReadonlyMap<number, Tried>> {
    if (from.size === 0) return from;
    const searches = new Map([...from].map(([place]) => [place, new GoldenSearch(0, Math.log(SLOW_FACTOR_MAX))]));
    const best = new Map(from);
    for (let round = 0; round < TRIES; round++) {
      yield;
      const speeds = this.#setting.endpoints.map((_, place): Slowness => {
        const one = from.get(place);
        return one === undefined ? LIKE_FLEET : { ...slownessOf(one), [which]: searches.get(place)!.next };
      });
      const seen = this.look(speeds);
      for (const [place, search] of searches) {
        const tried = { ...speeds[place]!, misses: missesOf(seen[place]!.requests, fleet) };
        search.take(tried.misses.mean);
        if (tried.misses.mean < best.get(place)!.misses.mean) best.set(place, tried);
      }
    }
    return best;
  }

  /** Others than fitted step times have none of their own. */
  #hasPromptTime(): boolean {
    const { stepTime } = this.#setting.engine;
    return this.#computesOwnPrompts && stepTime.kind === "coefficients" && stepTime.perPrefillTokenMicros > 0;
  }
}

function bestOf(a: ReadonlyMap<number, Tried>, b: ReadonlyMap<number, Tried>): ReadonlyMap<number, Tried> {
  return new Map(
    [...a].map(([place, one]) => [place, b.get(place)!.misses.mean < one.misses.mean ? b.get(place)! : one]),
  );
}

function slownessOf({ steps, prompts }: Slowness): Slowness {
  return { steps, prompts };
}

function beyondChance({ steps, prompts }: Slowness): Slowness {
  return {
    steps: steps >= Math.log(SLOW_FACTOR_MIN) ? steps : 0,
    prompts: prompts >= Math.log(SLOW_PREFILL_FACTOR_MIN) ? prompts : 0,
  };
}

/** How far the simulation is off for the fleet; of two engines the faster one is it. */
function fleetOf(even: readonly EngineRatios[]): Slowness {
  const known = even.filter(({ isKnown }) => isKnown);
  const usual = (of: (one: EngineRatios) => number) => {
    const middles = known.map(of).filter((middle) => !Number.isNaN(middle));
    if (middles.length === 0) return 0;
    return middles.length === 2 ? Math.min(...middles) : median(middles);
  };
  return { steps: usual(({ answers }) => answers.middle), prompts: usual(({ firstTokens }) => firstTokens.middle) };
}

function isSuspect({ isKnown, answers, firstTokens }: EngineRatios, fleet: Slowness): boolean {
  const isBeyond = ({ middle, error }: EngineRatios["answers"], usual: number) =>
    middle - usual >= Math.max(Math.log(LOOK_FACTOR_MIN), BETTER_ERRORS_MIN * error);
  return isKnown && (isBeyond(answers, fleet.steps) || isBeyond(firstTokens, fleet.prompts));
}

function ownLevel(residuals: StepResiduals | undefined, place: number): number {
  if (residuals === undefined) return 0;
  const { windows, stalls } = residuals;
  return usualLevel({ windows: [windows[place % windows.length]!], stalls });
}

function withLevels(base: StepResiduals | undefined, levels: readonly number[]): StepResiduals {
  const windows = levels.map((level, place) => {
    const logs = base?.windows[place % base.windows.length] ?? [0];
    return logs.map((log) => log + level);
  });
  if (base !== undefined) return { ...base, windows };
  return { windowMicros: Number.MAX_SAFE_INTEGER, windows, levelError: 0, delayError: 0, prefillError: 0 };
}
