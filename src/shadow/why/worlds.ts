import { divisionOf } from "#core/profile/profile-parts.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { type SlowEngines, type EngineSpeeds, slowEngines } from "./engine-speeds.ts";
import { CAUSES, type Removable, runWorld, type TrafficAsked, type WorldOutcome } from "./world.ts";

/** As it happened. */
export const NONE: ReadonlySet<Removable> = new Set();

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

  /** Before anything else: the engines are as slow from then on as they were. */
  *findSlowEngines(observed: readonly Observed[]): Generator<void, void> {
    const traffic = this.#traffic;
    yield;
    const run = (speeds: EngineSpeeds) => {
      this.#count++;
      return runWorld({ ...traffic, slow: { engines: [], speeds: () => speeds } }, NONE);
    };
    const slow = slowEngines(traffic.setting, observed, run, divisionOf(traffic.inForce.spec) === undefined);
    this.#traffic = { ...traffic, slow };
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

/** Which simulation of those without the same causes. */
interface Which {
  readonly replica?: number;
  readonly alone?: boolean;
}

function keyOf(without: ReadonlySet<Removable>, { replica = 0, alone = false }: Which): string {
  return `${CAUSES.filter((cause) => without.has(cause)).join("+")} ${replica} ${alone}`;
}
