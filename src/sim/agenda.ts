import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import { EventQueue } from "./event-queue.ts";
import { EVENT_PRIORITY, type SimulationEvent } from "./path/simulation-event.ts";
import type { ScriptEvent } from "./setting/simulation-options.ts";

/** What is to happen outside arrivals and engines, in its order: changes of the fleet come from a list of their own. */
export class Agenda {
  readonly #queue = new EventQueue<SimulationEvent>();
  readonly #changes: readonly ScriptEvent[];
  #nextChange = 0;
  #changeAt: Micros;
  /** Of what is queued, all but the reading of gauges. */
  #others = 0;

  /** Of `changes`, what lies below 0 happens at 0. */
  constructor(changes: readonly ScriptEvent[]) {
    // A damaged trace may hold them in another order.
    this.#changes = changes.toSorted((a, b) => a.at - b.at);
    this.#changeAt = this.#changes[0]?.at ?? Infinity;
  }

  /** Infinity when there is nothing. */
  get nextAt(): Micros {
    return Math.min(this.#changeAt, this.#queue.nextAt);
  }

  /** Time before which nothing but the reading of gauges happens, as far as it stands here; -1 where something may. */
  get quietUntil(): Micros {
    return this.#others > 0 ? -1 : this.#changeAt;
  }

  push(at: Micros, event: SimulationEvent): void {
    if (event.kind !== "signal") this.#others++;
    this.#queue.push(at, EVENT_PRIORITY[event.kind], event);
  }

  pop(): SimulationEvent {
    if (this.#changeAt <= this.#queue.nextAt) return this.#change();
    const event = this.#queue.pop();
    if (event.kind !== "signal") this.#others--;
    return event;
  }

  /** Whatever else happens at that time comes after it. */
  #change(): SimulationEvent {
    const change = this.#changes[this.#nextChange++];
    assert(change !== undefined, "what is popped is there");
    this.#changeAt = this.#changes[this.#nextChange]?.at ?? Infinity;
    return { kind: "fleet", change: change.at < 0 ? { ...change, at: 0 } : change };
  }
}
