import type { RequestEffect } from "./request-effect.ts";
import { DEFECT, type RequestEvent } from "./request-event.ts";
import { READING, type RequestState } from "./request-state.ts";
import { transition } from "./transition.ts";

/** Carries out what transitions have done. */
export interface EffectPerformer {
  /** Carries out an effect. One that asks returns the event that answers it, or undefined where that comes later. */
  perform(effect: RequestEffect): RequestEvent | undefined;
  /** An effect threw; the others of its step are carried out all the same, and the request ends as after a defect. */
  threw(error: unknown): void;
}

/** Holds the state of one request and puts it through its transitions. */
export class StateRunner {
  readonly #performer: EffectPerformer;
  state: RequestState = READING;

  constructor(performer: EffectPerformer) {
    this.#performer = performer;
  }

  dispatch(event: RequestEvent): void {
    for (let next: RequestEvent | undefined = event; next !== undefined;) next = this.#step(next);
  }

  /** Effects that ask stand last in a step, so that whatever they bring about meets the step's own state. */
  #step(event: RequestEvent): RequestEvent | undefined {
    const before = this.state;
    const { state, effects } = transition(before, event);
    this.state = state;
    let next: RequestEvent | undefined;
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
