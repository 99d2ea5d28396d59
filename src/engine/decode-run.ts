import type { Micros } from "#core/base/units.ts";
import type { DecodeCohort } from "./decode-cohort.ts";
import type { Step } from "./step.ts";

/** Steps planned at once at most. A longer run is planned again at its end; nothing else depends on it. */
const STEPS_MAX = 512;
const NO_TIMES = new Float64Array(0);

/**
 * Decode steps of a batch that stays as it is, which is its cohort and nobody else. Every member computes one token a
 * step, so a step's cost here does not depend on the batch.
 *
 * With asynchronous scheduling every step's start composes the step after it: the run then begins with a step that is
 * composed already, and the blocks taken at a start are those of the step ahead.
 */
export class DecodeRun {
  active = false;
  /** Steps that have started and ended. At most one has started and not ended. */
  started = 0;
  ended = 0;
  members = 0;
  readonly #cohort: DecodeCohort;
  /** Steps composed before they start: 1 with asynchronous scheduling, else 0. */
  readonly #ahead: 0 | 1;
  #planned = 0;
  /** Made at the first run: many an engine of a short simulation has none. */
  #startAt = NO_TIMES;
  #endAt = NO_TIMES;

  constructor(cohort: DecodeCohort, asyncScheduling: boolean) {
    this.#cohort = cohort;
    this.#ahead = asyncScheduling ? 1 : 0;
  }

  /** Nothing has started yet. Returns the steps that all members will be in. */
  begin(): number {
    if (this.#endAt === NO_TIMES) {
      this.#startAt = new Float64Array(STEPS_MAX + 1);
      this.#endAt = new Float64Array(STEPS_MAX);
    }
    this.started = 0;
    this.ended = 0;
    this.#planned = 0;
    this.members = this.#cohort.members;
    this.#cohort.beginRun();
    return Math.min(STEPS_MAX, this.#cohort.stepsLeft);
  }

  /** Adds a step to the plan. */
  plan(startAt: Micros, endAt: Micros, nextStartAt: Micros): void {
    this.#startAt[this.#planned] = startAt;
    this.#endAt[this.#planned] = endAt;
    this.#planned++;
    this.#startAt[this.#planned] = nextStartAt;
  }

  get planned(): number {
    return this.#planned;
  }

  /** True when every planned step has started. */
  get exhausted(): boolean {
    return this.started === this.#planned;
  }

  get executing(): boolean {
    return this.started > this.ended;
  }

  /** End of the step that runs or ran last. */
  get stepEndAt(): Micros {
    return this.#endAt[this.started - 1] ?? 0;
  }

  /** Start of the next step, planned or not. */
  get nextStartAt(): Micros {
    return this.#startAt[this.started] ?? 0;
  }

  /** End of the last planned step. */
  get lastEndAt(): Micros {
    return this.#endAt[this.#planned - 1] ?? 0;
  }

  /** Forgets the planned steps that start at `at` or later, and have not started. */
  cut(at: Micros): void {
    while (this.#planned > this.started && (this.#startAt[this.#planned - 1] ?? 0) >= at) this.#planned--;
  }

  /**
   * Ends and starts what is due by `at`, until every planned step has started. A step is composed as it starts or, with
   * asynchronous scheduling, as the one before it has started. `began` is notified of each start, where somebody is.
   * Most steps touch no block, so all of them are gone through here, where the times are at hand.
   */
  advance(at: Micros, began: ((startAt: Micros) => void) | undefined): void {
    const startAts = this.#startAt;
    const endAts = this.#endAt;
    const cohort = this.#cohort;
    const ahead = this.#ahead > 0;
    for (;;) {
      const step = this.started;
      if (step > this.ended) {
        if ((endAts[step - 1] as number) > at) return;
        this.ended++;
      }
      const startAt = startAts[step] as number;
      if (startAt > at) return;
      if (!ahead) cohort.composeAfter(step, startAt);
      this.started = step + 1;
      began?.(startAt);
      if (ahead) cohort.composeAfter(step, startAt);
      if (this.started === this.#planned) return;
    }
  }

  /** As if every step had been composed singly: one that runs is `current`, one that is composed ahead `next`. */
  collapse(current: Step, next: Step): void {
    this.active = false;
    this.describe(current, this.started - 1);
    if (this.#ahead > 0) this.describe(next, this.started);
    this.#cohort.passed(this.started, this.ended);
  }

  /** Step number `number` of the run. */
  describe(step: Step, number: number): void {
    const cohort = this.#cohort;
    step.clear();
    step.number = cohort.composed + number + 1 - this.#ahead;
    step.cohort = this.members;
    step.members = this.members;
    step.shape.decodeSequences = this.members;
    step.shape.decodeContextTokens = cohort.contextTokens(number);
    step.shape.decodeContextMaxTokens = cohort.contextMaxTokens(number);
  }
}
