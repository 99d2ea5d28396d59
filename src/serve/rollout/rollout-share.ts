import { isRolloutUnderWay, ROLLOUTS_MAX } from "#core/rollout/rollout-book.ts";
import type { RolloutState } from "#core/rollout/rollout-state.ts";
import { Rounds } from "../state/rounds.ts";
import type { SharedStore } from "../state/shared-store.ts";
import { rolloutsText, type SavedRollout, savedRollouts } from "./saved-rollout.ts";

export interface RolloutShareOptions {
  readonly store: SharedStore;
  /** Name of the value that holds them. */
  readonly key: string;
  /** Rollouts as they stand here. */
  readonly own: () => readonly SavedRollout[];
  /** One that stands further elsewhere. */
  readonly adopt: (rollout: SavedRollout) => void;
  /** What could not be read or written, in words; once, until it is `recovered`. */
  readonly failed: (detail: string) => void;
  readonly recovered: () => void;
}

/** Others that write at the same time may be quicker so often. */
const TRIES_MAX = 8;

/**
 * Rollouts that all replicas of a gateway run in step: a step that one of them makes is taken by all. Arms and windows
 * follow from the plan and the wall time of its steps alone, so nothing else has to be agreed on. Without the store
 * each goes on by itself; once it is there again, also where it is empty, whoever stands further brings the others
 * there.
 */
export class RolloutShare {
  readonly #options: RolloutShareOptions;
  readonly #rounds: Rounds;

  constructor(options: RolloutShareOptions) {
    this.#options = options;
    const { failed, recovered } = options;
    this.#rounds = new Rounds({ round: () => this.#once(), failed, recovered });
  }

  /** What others run is known here, or the store could not be asked. */
  get asked(): boolean {
    return this.#rounds.asked;
  }

  /**
   * Takes what is there and brings what is here. Never rejects. Resolves with "" when all that was here at the call is
   * there, else with what is wrong.
   */
  sync(): Promise<string> {
    return this.#rounds.sync();
  }

  async #once(): Promise<void> {
    const { store, key } = this.#options;
    for (let i = 0; i < TRIES_MAX; i++) {
      const there = await store.read(key);
      const known = there === undefined ? [] : savedRollouts(JSON.parse(there.text) as unknown).rollouts;
      this.#take(known);
      const text = rolloutsText(merged(known, this.#options.own()), []);
      if (text === there?.text || (there === undefined && text === NOTHING)) return;
      if ((await store.replace(key, there?.revision ?? 0, text)) !== undefined) return;
    }
    throw new Error("others wrote at the same time again and again");
  }

  #take(there: readonly SavedRollout[]): void {
    const own = new Map(this.#options.own().map((one) => [one.state.plan.name, one]));
    for (const one of there) {
      const here = own.get(one.state.plan.name);
      if (here === undefined || stands(one.state, here.state) || (one.overtaken && !here.overtaken))
        this.#options.adopt(one);
    }
  }
}

const NOTHING = rolloutsText([], []);

/** Of two states of a rollout the one in the store stands where it is over, or, both being as far, made the later step. */
function stands(there: RolloutState, here: RolloutState): boolean {
  const [far, near] = [distanceOf(there), distanceOf(here)];
  if (far !== near) return far > near;
  return far === OVER ? there.phase !== here.phase : there.at > here.at;
}

const OVER = 2;

function distanceOf(state: RolloutState): number {
  if (state.phase === "planned") return 0;
  return isRolloutUnderWay(state) ? 1 : OVER;
}

/** In the order of the store, new ones last; of too many, those that ended first are let go. */
function merged(there: readonly SavedRollout[], own: readonly SavedRollout[]): readonly SavedRollout[] {
  const all = new Map(there.map((one) => [one.state.plan.name, one]));
  for (const one of own) {
    const { name } = one.state.plan;
    const known = all.get(name);
    if (known === undefined || stands(one.state, known.state) || one.overtaken) all.set(name, one);
  }
  const rollouts = [...all.values()];
  const ended = rollouts.filter(({ state }) => distanceOf(state) === OVER).toSorted((a, b) => a.state.at - b.state.at);
  const gone = new Set(ended.slice(0, Math.max(0, rollouts.length - ROLLOUTS_MAX)));
  return rollouts.filter((one) => !gone.has(one));
}
