import type { Decision, Placed } from "#core/input/decision.ts";
import { type AskingInput, type Input, isAsking, type RequestAgain } from "#core/input/input.ts";
import type { Router } from "#core/router.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";

/**
 * Sees every input in order, with the decision that it caused and the time which that took. It must return at once and
 * never throw.
 */
export interface TapListener {
  accepted(input: Input, decision: Decision | undefined, decisionMicros: number): void;
}

/**
 * The only way into the live router: whatever reaches the core reaches the recorder, the metrics and the shadow too, in
 * the same order.
 */
export class RouterTap {
  readonly router: Router;
  readonly #listeners: TapListener[] = [];
  /** Of the latest input. */
  lastAt: Micros = 0;

  constructor(router: Router) {
    this.router = router;
  }

  listen(listener: TapListener): void {
    this.#listeners.push(listener);
  }

  accept(input: RequestAgain): Placed;
  accept(input: AskingInput): Decision;
  accept(input: Input): Decision | undefined;
  accept(input: Input): Decision | undefined {
    this.lastAt = input.at;
    const isTimed = isAsking(input);
    const startMillis = isTimed ? performance.now() : 0;
    const decision = this.router.accept(input);
    const decisionMicros = isTimed ? (performance.now() - startMillis) * MICROS_PER_MILLI : 0;
    for (const listener of this.#listeners) listener.accepted(input, decision, decisionMicros);
    return decision;
  }
}
