import type { Micros } from "#core/base/units.ts";
import type { KvCache } from "./kv-cache.ts";
import type { Sequence } from "./sequence.ts";
import type { Step } from "./step.ts";

/** Steps planned at once at most. A longer run is planned again at its end; nothing else depends on it. */
const STEPS_MAX = 512;

/**
 * Decode steps of a batch that stays as it is. Every member computes one token a step, so a step's cost here does not
 * depend on the batch: the members are left as they were at the beginning and brought up to date at the end.
 *
 * A member needs a new block when the position that it computes begins one, and fills a block when it ends one. Members
 * are sorted by position within a block, so that a step touches only those at a boundary.
 *
 * With asynchronous scheduling every step's start composes the step after it: the run then begins with a step that is
 * composed already, and the blocks taken at a start are those of the step ahead.
 */
export class DecodeRun {
  active = false;
  /** Steps that have started and ended. At most one has started and not ended. */
  started = 0;
  ended = 0;
  /** Members, the sum of the tokens before each at the beginning, and the most that one has. */
  members = 0;
  contextTokens = 0;
  contextMaxTokens = 0;
  readonly #kv: KvCache;
  /** Steps composed before they start: 1 with asynchronous scheduling, else 0. */
  readonly #ahead: 0 | 1;
  /** A step fills a block by computing its last position; composed ahead, its token unknown, the step after it does. */
  readonly #fillsLast: 0 | 1;
  #running: readonly Sequence[] = [];
  #planned = 0;
  readonly #startAt = new Float64Array(STEPS_MAX + 1);
  readonly #endAt = new Float64Array(STEPS_MAX);
  /** Members by phase: indexes #byPhase[#phaseStart[p]] to #byPhase[#phaseStart[p + 1] - 1] are at phase p. */
  readonly #phaseStart: Int32Array;
  #byPhase = new Int32Array(64);
  #phaseOf = new Int32Array(64);

  constructor(kv: KvCache, asyncScheduling: boolean) {
    this.#kv = kv;
    this.#ahead = asyncScheduling ? 1 : 0;
    this.#fillsLast = asyncScheduling ? 0 : 1;
    this.#phaseStart = new Int32Array(kv.blockTokens + 1);
  }

  /** Takes the members in; nothing has started yet. Returns the steps that all of them will be in. */
  begin(running: readonly Sequence[]): number {
    this.#running = running;
    this.members = running.length;
    this.started = 0;
    this.ended = 0;
    this.#planned = 0;
    this.contextTokens = 0;
    this.contextMaxTokens = 0;
    if (running.length > this.#byPhase.length) {
      this.#byPhase = new Int32Array(running.length * 2);
      this.#phaseOf = new Int32Array(running.length * 2);
    }
    const { blockTokens } = this.#kv;
    const starts = this.#phaseStart.fill(0);
    let stepsLeft = STEPS_MAX;
    for (let i = 0; i < running.length; i++) {
      const sequence = running[i] as Sequence;
      const phase = sequence.computed % blockTokens;
      this.#phaseOf[i] = phase;
      starts[phase + 1] = (starts[phase + 1] ?? 0) + 1;
      const context = sequence.computed - this.#ahead;
      this.contextTokens += context;
      if (context > this.contextMaxTokens) this.contextMaxTokens = context;
      const left = sequence.target - sequence.generated - this.#ahead;
      if (left < stepsLeft) stepsLeft = left;
    }
    for (let phase = 0; phase < blockTokens; phase++)
      starts[phase + 1] = (starts[phase + 1] ?? 0) + (starts[phase] ?? 0);
    for (let i = running.length - 1; i >= 0; i--) {
      const phase = this.#phaseOf[i] ?? 0;
      const end = (starts[phase + 1] ?? 0) - 1;
      starts[phase + 1] = end;
      this.#byPhase[end] = i;
    }
    this.#shiftStarts();
    return stepsLeft;
  }

  /** After the backward fill every end has become its phase's start: entry p + 1 holds the start of phase p. */
  #shiftStarts(): void {
    const starts = this.#phaseStart;
    const last = starts.length - 1;
    for (let phase = 0; phase < last; phase++) starts[phase] = starts[phase + 1] ?? 0;
    starts[last] = this.members;
  }

  /** Blocks that the step after `step` others will take. */
  blocksTaken(step: number): number {
    const phase = this.#phaseAt(step, 0);
    return (this.#phaseStart[phase + 1] ?? 0) - (this.#phaseStart[phase] ?? 0);
  }

  /** Whether that step makes a block of the chain `hashes` hittable at the place that it has in the chain. */
  fills(step: number, hashes: Int32Array): boolean {
    const phase = this.#phaseAt(step, this.#fillsLast);
    const end = this.#phaseStart[phase + 1] ?? 0;
    for (let i = this.#phaseStart[phase] ?? 0; i < end; i++) {
      const sequence = this.#running[this.#byPhase[i] ?? 0] as Sequence;
      const word = 2 * ((sequence.computed + step + this.#fillsLast) / this.#kv.blockTokens - 1);
      const own = sequence.request.hashes;
      if (word + 1 < hashes.length && own[word] === hashes[word] && own[word + 1] === hashes[word + 1]) return true;
    }
    return false;
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
    const ahead = this.#ahead > 0;
    for (;;) {
      const step = this.started;
      if (step > this.ended) {
        if ((endAts[step - 1] as number) > at) return;
        this.ended++;
      }
      const startAt = startAts[step] as number;
      if (startAt > at) return;
      if (!ahead) this.#compose(step, startAt);
      this.started = step + 1;
      began?.(startAt);
      if (ahead) this.#compose(step, startAt);
      if (this.started === this.#planned) return;
    }
  }

  /** Takes and fills the blocks of the step after `step` others, members in the order of the batch. */
  #compose(step: number, at: Micros): void {
    const starts = this.#phaseStart;
    const taking = this.#phaseAt(step, 0);
    const filling = this.#phaseAt(step, this.#fillsLast);
    let take = starts[taking] as number;
    let fill = starts[filling] as number;
    const takeEnd = starts[taking + 1] as number;
    const fillEnd = starts[filling + 1] as number;
    while (take < takeEnd || fill < fillEnd) {
      const taker = take < takeEnd ? (this.#byPhase[take] as number) : this.members;
      const filler = fill < fillEnd ? (this.#byPhase[fill] as number) : this.members;
      if (taker <= filler) {
        this.#kv.take(this.#running[taker] as Sequence, 1, at);
        take++;
      } else {
        const sequence = this.#running[filler] as Sequence;
        this.#kv.store(sequence, sequence.computed + step + this.#fillsLast, at);
        fill++;
      }
    }
  }

  /**
   * Brings the members up to date, as if every step had been composed. A step that runs is written down in `current`,
   * one that is composed ahead in `next`.
   */
  collapse(current: Step, next: Step): void {
    this.active = false;
    const { executing } = this;
    this.describe(current, this.started - 1);
    if (this.#ahead > 0) this.describe(next, this.started);
    for (const sequence of this.#running) {
      sequence.computed += this.started;
      sequence.generated += this.ended;
      sequence.pending = (executing ? 1 : 0) + this.#ahead;
      if (executing) current.addYield(sequence);
      if (this.#ahead > 0) next.addYield(sequence);
    }
  }

  /** Step number `number` of the run, without its members' tokens. */
  describe(step: Step, number: number): void {
    step.clear();
    step.members = this.members;
    step.shape.decodeSequences = this.members;
    step.shape.decodeContextTokens = this.contextTokens + number * this.members;
    step.shape.decodeContextMaxTokens = this.contextMaxTokens + number;
  }

  /** Phase of the members that after `step` steps compute the first (0) or last (1) position of a block. */
  #phaseAt(step: number, last: 0 | 1): number {
    const { blockTokens } = this.#kv;
    const past = (step + last) % blockTokens;
    return past === 0 ? 0 : blockTokens - past;
  }
}
