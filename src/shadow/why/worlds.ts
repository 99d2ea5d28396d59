import { median } from "#core/base/quantile.ts";
import { divisionOf } from "#core/profile/profile-stages.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { type EngineSpeeds, SIMULATIONS_MAX, type SlowEngines, slowEngines } from "./engine-speeds.ts";
import { isCloser, type Misses, missesOf } from "./misses.ts";
import { ratiosOf } from "./observed-ratios.ts";
import { type Refittable, refittedEngine } from "./refitted-engine.ts";
import { CAUSES, type Removable, runWorld, type TrafficAsked, type WorldOutcome } from "./world.ts";

/** As it happened. */
export const NONE: ReadonlySet<Removable> = new Set();

/** Mean first tokens are off by that much, or there is no need to look at the engine. */
const OFF_MIN = 0.03;
const CLOSER_ERRORS_MIN = 2;

/** That the engine's times were fitted anew. */
export interface Refit {
  /** To whose requests. */
  readonly endpoints: readonly string[];
  /** By which share a first token is off in the middle, with the engine as it was given and with this one. */
  readonly before: number;
  readonly after: number;
}

interface HowFarOff {
  readonly misses: Misses;
  /** Simulated over observed mean first tokens less 1. */
  readonly off: number;
  /** By which share a first token is off in the middle. */
  readonly typical: number;
}

/** Simulations of one traffic without some causes, each made once; a step before every one. */
export class Worlds {
  #traffic: TrafficAsked;
  readonly #outcomes = new Map<string, WorldOutcome>();
  #count = 0;

  constructor(traffic: TrafficAsked) {
    this.#traffic = traffic;
  }

  get traffic(): TrafficAsked {
    return this.#traffic;
  }

  get slow(): SlowEngines | undefined {
    return this.#traffic.slow;
  }

  /** Simulations that were run. */
  get count(): number {
    return this.#count;
  }

  get all(): readonly WorldOutcome[] {
    return [...this.#outcomes.values()];
  }

  /**
   * Before anything else: the engines are as slow from then on as they were. Takes no more simulated requests than so many
   * simulations of the whole traffic would.
   */
  *findSlowEngines(observed: readonly Observed[], worldsMax: number): Generator<void, void> {
    const room = Math.max(1, Math.floor((worldsMax * observed.length) / SIMULATIONS_MAX));
    const { traffic, observed: seen } = firstArrived(this.#traffic, observed, room);
    const run = (speeds: EngineSpeeds) => {
      this.#count++;
      return runWorld({ ...traffic, slow: { engines: [], speeds: () => speeds } }, NONE);
    };
    const computesOwnPrompts = divisionOf(traffic.inForce.spec) === undefined;
    const slow = yield* slowEngines(traffic.setting, seen, run, computesOwnPrompts);
    this.#traffic = { ...this.#traffic, slow };
  }

  /**
   * After that: where the engine is off, or was fitted to slow ones too, its times are fitted anew to the requests of the
   * others, and that is the engine from then on if what was observed is closer to it. Undefined where it is not.
   */
  *refit(observed: readonly Observed[], worldsMax: number, what: Refittable): Generator<void, Refit | undefined> {
    yield* this.run(NONE);
    const before = { traffic: this.#traffic, outcomes: new Map(this.#outcomes) };
    const given = this.#misses(observed);
    const slow = new Set(this.slow?.engines.map(({ endpoint }) => endpoint));
    if (slow.size === 0 && Math.abs(given.off) < OFF_MIN) return undefined;
    const fitted = yield* refittedEngine(this.#traffic.setting, observed, slow, what);
    if (fitted === undefined) return undefined;
    const { engine, residuals, endpoints } = fitted;
    this.#traffic = { ...this.#traffic, setting: { ...this.#traffic.setting, engine, residuals }, slow: undefined };
    this.#outcomes.clear();
    yield* this.findSlowEngines(observed, worldsMax);
    yield* this.run(NONE);
    const own = this.#misses(observed);
    if (isCloser(own.misses, given.misses, CLOSER_ERRORS_MIN))
      return { endpoints, before: given.typical, after: own.typical };
    this.#traffic = before.traffic;
    this.#outcomes.clear();
    for (const [key, outcome] of before.outcomes) this.#outcomes.set(key, outcome);
    return undefined;
  }

  /** How far the simulation of what happened is off. */
  #misses(observed: readonly Observed[]): HowFarOff {
    const { setting, inForce } = this.#traffic;
    const outcome = this.get(NONE);
    const ratios = ratiosOf(setting, observed, outcome, divisionOf(inForce.spec) === undefined);
    const requests = ratios
      .flatMap((one) => one.requests)
      .sort((a, b) => outcome.arrivalMicros[a.index]! - outcome.arrivalMicros[b.index]!);
    let [seen, simulated] = [0, 0];
    observed.forEach(({ ok, ttftMicros }, index) => {
      const ttft = outcome.ttftMicros[index]!;
      if (!ok || Number.isNaN(ttftMicros) || Number.isNaN(ttft)) return;
      seen += ttftMicros;
      simulated += ttft;
    });
    const apart = requests.map(({ firstToken }) => Math.abs(firstToken)).filter((one) => !Number.isNaN(one));
    return {
      misses: missesOf(requests, { steps: 0, prompts: 0 }),
      off: simulated / seen - 1,
      typical: Math.exp(median(apart)) - 1,
    };
  }

  /** With `alone`, after the same with everybody at once. */
  *run(without: ReadonlySet<Removable>, which: Which = {}): Generator<void, void> {
    const key = keyOf(without, which);
    if (this.#outcomes.has(key)) return;
    yield;
    this.#count++;
    const { replica = 0, alone = false } = which;
    const options = { replica, ...(alone && { alone: this.get(without, { replica }) }) };
    this.#outcomes.set(key, runWorld(this.#traffic, without, options));
  }

  /** One that was run. */
  get(without: ReadonlySet<Removable>, which: Which = {}): WorldOutcome {
    const outcome = this.#outcomes.get(keyOf(without, which));
    if (outcome === undefined) throw new RangeError(`expected a simulation that was run, got ${keyOf(without, which)}`);
    return outcome;
  }
}

/** How fast engines are shows in the first requests, of each of them so many on average, or so many of all. */
const OF_EACH_MAX = 100;
const OF_ALL_MIN = 1_500;

function firstArrived(
  traffic: TrafficAsked,
  observed: readonly Observed[],
  most: number,
): { readonly traffic: TrafficAsked; readonly observed: readonly Observed[] } {
  const { setting, sentTo } = traffic;
  const all = [...setting.workload];
  const room = Math.min(most, Math.max(OF_ALL_MIN, OF_EACH_MAX * setting.endpoints.length));
  if (all.length <= room) return { traffic, observed };
  const last = all.map(({ arrivalMicros }) => arrivalMicros).sort((a, b) => a - b)[room - 1]!;
  const first = all.filter(({ arrivalMicros }) => arrivalMicros <= last);
  const workload = first.map((request, index) => ({ ...request, index }));
  const part = { ...traffic, setting: { ...setting, workload } };
  return {
    traffic: sentTo === undefined ? part : { ...part, sentTo: first.map(({ index }) => sentTo[index]) },
    observed: first.map(({ index }) => observed[index]!),
  };
}

/** Which simulation of those without the same causes. */
interface Which {
  readonly replica?: number;
  readonly alone?: boolean;
}

function keyOf(without: ReadonlySet<Removable>, { replica = 0, alone = false }: Which): string {
  return `${CAUSES.filter((cause) => without.has(cause)).join("+")} ${replica} ${alone}`;
}
