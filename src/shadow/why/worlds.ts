import type { Observed } from "#shadow/recorded/observed.ts";
import { type SlowEngines, slowEngines } from "./engine-speeds.ts";
import { type Removable, CAUSES, runWorld, type TrafficAsked, type WorldOptions, type WorldOutcome } from "./world.ts";

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
    const slow = slowEngines(traffic.setting, observed, (residuals) => {
      this.#count++;
      return runWorld({ ...traffic, setting: { ...traffic.setting, residuals } }, NONE);
    });
    this.#traffic = { ...traffic, slow };
  }

  *run(without: ReadonlySet<Removable>, options: WorldOptions = {}): Generator<void, void> {
    const key = keyOf(without, options);
    if (this.#outcomes.has(key)) return;
    yield;
    this.#count++;
    this.#outcomes.set(key, runWorld(this.#traffic, without, options));
  }

  /** One that was run. */
  get(without: ReadonlySet<Removable>, options: WorldOptions = {}): WorldOutcome {
    const outcome = this.#outcomes.get(keyOf(without, options));
    if (outcome === undefined)
      throw new RangeError(`expected a simulation that was run, got ${keyOf(without, options)}`);
    return outcome;
  }
}

function keyOf(without: ReadonlySet<Removable>, { replica = 0, alone = false }: WorldOptions): string {
  return `${CAUSES.filter((cause) => without.has(cause)).join("+")} ${replica} ${alone}`;
}
