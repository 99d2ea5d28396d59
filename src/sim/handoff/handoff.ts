import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import type { BlockFetch, Hold } from "#engine/block-fetch.ts";
import type { PrefillLeg } from "../path/prefill-leg.ts";

/** What a handoff needs of the simulation. */
export interface HandoffHost {
  /** A transfer of so many tokens begins; returns how long it takes, and has `handedOver` called when that is over. */
  transfer(handoff: Handoff, tokens: number): Micros;
}

/**
 * - held: the prefill engine has the prompt's blocks and keeps them
 * - moving: the engine that answers has taken room, and they are on their way
 * - owned: they are there, and the prefill engine has let go of them
 * - lost: neither has them
 */
type State = "held" | "moving" | "owned" | "lost";

/** The blocks of one prompt between two engines: at any time exactly one of them has them, or none. */
export class Handoff implements BlockFetch {
  readonly leg: PrefillLeg;
  readonly heldAt: Micros;
  /** Which life of the prefill engine holds them. */
  readonly life: number;
  readonly #host: HandoffHost;
  #state: State = "held";
  #hold: Hold | undefined;

  constructor(leg: PrefillLeg, hold: Hold, heldAt: Micros, life: number, host: HandoffHost) {
    this.leg = leg;
    this.heldAt = heldAt;
    this.life = life;
    this.#hold = hold;
    this.#host = host;
  }

  get state(): State {
    return this.#state;
  }

  begins(_at: Micros, tokens: number): Micros {
    assert(this.#state !== "moving" && this.#state !== "owned", "blocks move once");
    const micros = this.#host.transfer(this, tokens);
    if (this.#state === "held") this.#state = "moving";
    return micros;
  }

  arrived(): boolean {
    return this.#state === "owned";
  }

  /** They are at the engine that answers, or nowhere; returns what the prefill engine is to let go of. */
  ends(owned: boolean): Hold | undefined {
    assert(this.#state !== "owned", "blocks change their owner once");
    this.#state = owned ? "owned" : "lost";
    const hold = this.#hold;
    this.#hold = undefined;
    return hold;
  }
}
