import type { PathEffect } from "./path-effect.ts";
import { DEFECT, type PathEvent } from "./path-event.ts";
import { READING, type PathState } from "./path-state.ts";
import { transition } from "./transition.ts";

/** Carries out what transitions have done. */
export interface PathHost {
  /** Carries out an effect. One that asks returns the event that answers it, or undefined where that comes later. */
  perform(effect: PathEffect): PathEvent | undefined;
  /** An effect threw; the others of its step are carried out all the same, and the request ends as after a defect. */
  threw(error: unknown): void;
}

/** Holds the state of one request and puts it through its transitions. */
export class RequestPath {
  readonly #performer: PathHost;
  state: PathState = READING;

  constructor(performer: PathHost) {
    this.#performer = performer;
  }

  dispatch(event: PathEvent): void {
    for (let next: PathEvent | undefined = event; next !== undefined;) next = this.#step(next);
  }

  /** Effects that ask stand last in a step, so that whatever they bring about meets the step's own state. */
  #step(event: PathEvent): PathEvent | undefined {
    const before = this.state;
    const { state, effects } = transition(before, event);
    this.state = state;
    let next: PathEvent | undefined;
    for (const effect of effects) {
      try {
        const answer = this.#performer.perform(effect);
        if (answer !== undefined && next !== DEFECT) next = answer;
      } catch (error) {
        this.#performer.threw(error);
        // A defect that changed nothing cannot be helped by another.
        if (event.kind !== "defect" || state !== before) next = DEFECT;
      }
    }
    return next;
  }
}
