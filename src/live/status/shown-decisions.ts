import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { TapListener } from "../base/router-tap.ts";
import { DecisionRing, type KeptDecision } from "./decision-ring.ts";

/** Decisions of a second that are shown, and beside them refusals, waits and retries. */
const PER_SECOND = 4;
/** Kept for who opens one: a minute of them where there are as many as may be. */
const KEPT = 2 * 60 * PER_SECOND;
const SPAN_MICROS = MICROS_PER_SECOND / PER_SECOND;

/**
 * A few decisions of every second for people to look at: all of a quiet gateway, and of a busy one as many as stay long
 * enough to be read. Refusals, waits and retries have room of their own.
 */
export class ShownDecisions implements TapListener {
  readonly #ring = new DecisionRing(KEPT);
  #usualUntil: Micros = -Infinity;
  #unusualUntil: Micros = -Infinity;

  accepted(input: Input, decision: Decision | undefined, decisionMicros: number): void {
    if (decision === undefined) return;
    const { at } = decision;
    if (decision.kind !== "routed" || decision.attempt > 1) {
      if (at < this.#unusualUntil) return;
      this.#unusualUntil = at + SPAN_MICROS;
    } else {
      if (at < this.#usualUntil) return;
      this.#usualUntil = at + SPAN_MICROS;
    }
    this.#ring.accepted(input, decision, decisionMicros);
  }

  /** At most `count` of those after the sequence, newest first. */
  after(sequence: number, count: number): KeptDecision[] {
    return this.#ring.last(count).filter(({ decision }) => decision.sequence > sequence);
  }

  get(sequence: number): KeptDecision | undefined {
    return this.#ring.find(sequence);
  }
}
