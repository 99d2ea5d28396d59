import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "./config.ts";
import type { DecodeRun } from "./decode-run.ts";
import type { KvCache } from "./kv-cache.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";
import type { Step } from "./step.ts";
import type { StepTimer } from "./step-timer.ts";
import { emptyShape } from "./step-time/batch-shape.ts";

/**
 * Finds how many of the next steps are certain: decodes of the same batch, nobody admitted, preempted or done before
 * the last of them. What could end it earlier is either known (the first member to be done, blocks, arrivals) or
 * reported to the planner (a submission, an abort, a deadline).
 */
export class RunPlanner {
  readonly #config: EngineConfig;
  readonly #kv: KvCache;
  readonly #scheduler: Scheduler;
  readonly #timer: StepTimer;
  readonly #run: DecodeRun;
  readonly #possible: boolean;
  readonly #shape = emptyShape();
  /** An arrival may change who is admitted next. */
  #arrivalsMatter = false;

  constructor(config: EngineConfig, kv: KvCache, scheduler: Scheduler, timer: StepTimer, run: DecodeRun) {
    this.#config = config;
    this.#kv = kv;
    this.#scheduler = scheduler;
    this.#timer = timer;
    this.#run = run;
    this.#possible = config.coalesce && timer.stateless && config.semantics.completion === "step-end";
  }

  /**
   * Plans a run whose first step starts at `at`, before which nothing becomes visible until `arrivalAt`. That step is
   * `prepared` where steps are composed ahead.
   */
  begin(at: Micros, arrivalAt: Micros, prepared: Step | undefined): boolean {
    if (!this.#possible || (this.#config.asyncScheduling && !this.#decodesAll(prepared))) return false;
    const head = this.#blockedHead();
    if (head === null) return false;
    const run = this.#run;
    const shape = this.#shape;
    const { cohort } = this.#scheduler;
    const steps = run.begin();
    const until = this.#arrivalsMatter ? arrivalAt : Infinity;
    shape.decodeSequences = run.members;
    const gap = this.#timer.gapAfter(shape);
    let free = this.#kv.free;
    let startAt = at;
    for (let step = 0; step < steps && startAt < until; step++) {
      free -= cohort.blocksTaken(step);
      if (free < 0 || (head !== undefined && cohort.fills(step, head.request.hashes))) break;
      shape.decodeContextTokens = cohort.contextTokens(step);
      shape.decodeContextMaxTokens = cohort.contextMaxTokens(step);
      const endAt = startAt + this.#timer.duration(shape, startAt);
      run.plan(startAt, endAt, endAt + gap);
      startAt = endAt + gap;
    }
    run.active = run.planned > 0;
    return run.active;
  }

  #decodesAll(step: Step | undefined): boolean {
    if (step === undefined || step.shape.prefillSequences > 0) return false;
    return step.shape.decodeSequences === this.#scheduler.running.length;
  }

  /** A request will be visible at `at`. */
  arrival(at: Micros): void {
    if (this.#run.active && this.#arrivalsMatter) this.#run.cut(at);
  }

  /**
   * Null if the next step may be anything but decodes of the batch as it is. Otherwise the waiting request that keeps
   * not fitting until blocks are released or its own prefix appears, or undefined where nobody could be admitted anyway.
   */
  #blockedHead(): Sequence | undefined | null {
    const { running, waiting, fetches, cohort } = this.#scheduler;
    const { sequencesMax, batchTokensMax, scheduler } = this.#config;
    if (running.length === 0 || running.length > batchTokensMax) return null;
    cohort.join();
    if (cohort.members < running.length) return null;
    const full = running.length >= sequencesMax || running.length === batchTokensMax;
    if (full) {
      this.#arrivalsMatter = false;
      return undefined;
    }
    if (fetches.fetched.length > 0) return null;
    if (waiting.size === 0) {
      this.#arrivalsMatter = true;
      return undefined;
    }
    const head = waiting.peek();
    // Whose blocks are on their way is admitted before the head.
    this.#arrivalsMatter = scheduler !== "fcfs" || fetches.holding.size > 0;
    return this.#scheduler.stillBlocked(head) ? head : null;
  }
}
