import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "./config.ts";
import { gaugesOf } from "./engine-gauges.ts";
import { BlockFetches } from "./block-fetches.ts";
import { DecodeRun } from "./decode-run.ts";
import { KvCache } from "./kv-cache.ts";
import { Outbox } from "./outbox.ts";
import type { EngineRequest, FinishReason, SubmitOutcome } from "./request.ts";
import { Roster } from "./roster.ts";
import { RunPlanner } from "./run-planner.ts";
import { Scheduler } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";
import { Settlement } from "./settlement.ts";
import type { EngineGauges, EngineSink } from "./sink.ts";
import { Step } from "./step.ts";
import { StepTimer } from "./step-timer.ts";
import { verifyEngine } from "./verify-engine.ts";

/**
 * One vLLM engine as a state machine over time. The host submits and aborts, asks when something will happen next and
 * advances; the engine reports through its sink. At one instant: a step ends, requests become visible, the next step
 * starts, deadlines pass.
 *
 * The sink may submit from inside its callbacks. It must not advance or abort.
 */
export class Engine {
  readonly #config: EngineConfig;
  readonly #sink: EngineSink;
  readonly #kv: KvCache;
  readonly #scheduler: Scheduler;
  readonly #roster: Roster;
  readonly #settlement: Settlement;
  readonly #timer: StepTimer;
  readonly #outbox: Outbox;
  readonly #run: DecodeRun;
  readonly #planner: RunPlanner;
  /** Requests complete when their last step starts, not when it ends. */
  readonly #early: boolean;
  #clock: Micros = 0;
  /** A step runs until #stepEndAt, or none does and the next may start at #readyAt. */
  #executing = false;
  #stepEndAt: Micros = 0;
  #readyAt: Micros;
  #current = new Step();
  /** With asynchronous scheduling: the step after the one that runs, composed when that one started. */
  #next = new Step();
  #prepared = false;
  #steps = 0;
  /** Reports the steps of a run, where somebody follows steps. */
  readonly #began: ((startAt: Micros) => void) | undefined;
  /** Steps start together with those of other ranks: `composeStep`, `beginStep`. */
  readonly #paced: boolean;
  /** Nobody can be in a step before something comes, or blocks are given back. */
  #stalled = false;

  constructor(config: EngineConfig, sink: EngineSink, paced = false) {
    assert(config.dataParallel === 1, "an engine is one rank");
    assert(
      !config.asyncScheduling ||
        (config.semantics.completion === "step-end" && config.semantics.preempted === "keeps-tokens"),
      "asynchronous scheduling goes with vLLM's completion and preemption only",
    );
    this.#config = config;
    this.#paced = paced;
    this.#sink = sink;
    this.#kv = new KvCache(config, sink);
    this.#roster = new Roster(config);
    const fetches = new BlockFetches(this.#kv, (sequence, arrivesAt) => this.#roster.fetching(sequence, arrivesAt));
    this.#scheduler = new Scheduler(config, this.#kv, sink, fetches);
    this.#outbox = new Outbox(sink);
    const settled = [this.#scheduler, this.#roster, this.#outbox, sink] as const;
    this.#settlement = new Settlement(config, this.#kv, ...settled, (at, held) => this.#unhold(at, held));
    this.#timer = new StepTimer(config);
    this.#readyAt = this.#timer.firstReadyAt();
    this.#run = new DecodeRun(this.#scheduler.cohort, config.asyncScheduling);
    this.#planner = new RunPlanner(config, this.#kv, this.#scheduler, this.#timer, this.#run);
    this.#early = config.semantics.completion === "last-step-start";
    if (sink.step !== undefined) this.#began = (at) => this.#runStepped(at);
  }

  /**
   * Hands over a request that arrives at `at`, now or later. It is visible to the scheduler after the queueing delay,
   * and can be in the step that starts at that very time unless the engine was advanced to it before.
   */
  submit(at: Micros, request: EngineRequest): SubmitOutcome {
    assert(at >= this.#clock, "time does not run backwards");
    const entered = this.#roster.enter(at, request);
    if (typeof entered === "string") return entered;
    this.#planner.arrival(entered.visibleAt);
    if (this.#run.active && this.#run.exhausted) this.#endRun();
    return "queued";
  }

  /** Takes a request back; false if it is not here. Its full blocks stay cached. */
  abort(at: Micros, id: string): boolean {
    this.advanceTo(at);
    const sequence = this.#roster.find(id);
    if (sequence === undefined) return false;
    this.#dismiss(at, sequence, "abort");
    return true;
  }

  /** When something may happen next; undefined while there is nothing to do. */
  nextEventAt(): Micros | undefined {
    let next: Micros;
    if (this.#run.active) next = this.#run.lastEndAt;
    else if (this.#executing) next = this.#stepEndAt;
    else if (this.#paced) next = this.#roster.nextVisibleAt();
    else if (this.#hasWork()) next = Math.max(this.#readyAt, this.#clock);
    else next = Math.max(this.#readyAt, this.#roster.nextVisibleAt());
    next = Math.min(next, this.#roster.nextDeadlineAt(), this.#outbox.nextAt());
    return next === Infinity ? undefined : next;
  }

  /** Everything up to and including `at` takes effect. */
  advanceTo(at: Micros): void {
    for (;;) {
      const next = this.nextEventAt();
      if (next === undefined || next > at) break;
      assert(next >= this.#clock, "time does not run backwards");
      this.#clock = next;
      this.#outbox.flush(next);
      if (this.#run.active) this.#advanceRun(next);
      if (this.#executing && this.#stepEndAt <= next) this.#endStep(next);
      this.#receive(next);
      const idle = !this.#paced && !this.#executing && !this.#run.active;
      if (idle && this.#readyAt <= next && this.#hasWork()) this.#startStep(next);
      while (this.#roster.nextDeadlineAt() <= next) this.#dismiss(next, this.#roster.takeExpired(), "deadline");
    }
    if (this.#run.active) this.#advanceRun(at);
    if (at > this.#clock) this.#clock = at;
    this.#receive(at);
  }

  #receive(at: Micros): void {
    const { waiting, fetches } = this.#scheduler;
    if (this.#roster.receive(at, waiting, fetches.fetched)) this.#stalled = false;
  }

  /** Another engine has the blocks of a request that ended, or they are not wanted any more. */
  #unhold(at: Micros, sequence: Sequence): void {
    this.advanceTo(at);
    if (this.#run.active) this.#endRun();
    this.#settlement.held.delete(sequence);
    this.#kv.release(sequence, at);
    this.#roster.retire(sequence);
    this.#stalled = false;
  }

  /** A paced rank between two steps has something to compute, or may have. */
  get wantsStep(): boolean {
    return !this.#executing && this.#hasWork();
  }

  /** When a paced rank may start a step at the earliest: its last one and the gap behind it are over. */
  get readyAt(): Micros {
    return Math.max(this.#readyAt, this.#clock);
  }

  /** The step that a paced rank computes from `at` on, to which it was advanced; undefined for none. */
  composeStep(at: Micros): Readonly<Step> | undefined {
    assert(this.#paced && !this.#executing && this.#clock === at, "a rank composes between two steps");
    if (!this.#hasWork()) return undefined;
    return this.#compose(at) ? this.#current : undefined;
  }

  /** Starts what composeStep composed. */
  beginStep(at: Micros, endAt: Micros): void {
    this.#stepEndAt = endAt;
    this.#begin(at);
  }

  /** Reports at once, with its time, what the step that runs will bring where that is settled when it starts. */
  reportSettled(): void {
    this.#outbox.flush(Infinity);
  }

  /** Requests in the batch, and waiting for it. */
  get running(): number {
    return this.#scheduler.running.length;
  }

  get waiting(): number {
    return this.#scheduler.waiting.size + this.#scheduler.fetches.holding.size;
  }

  /** Requests that ended and whose blocks another engine has not fetched. */
  get held(): number {
    return this.#settlement.held.size;
  }

  /** Used over usable KV blocks, in [0, 1]. */
  get kvUtilization(): number {
    return this.#kv.used / this.#kv.usable;
  }

  /** A snapshot, made anew; the getters above are cheaper. */
  gauges(): EngineGauges {
    const coalesced = this.#run.active ? this.#run.ended * this.#run.members : 0;
    return gaugesOf(this, this.#kv, this.#scheduler, this.#settlement, this.#steps, coalesced);
  }

  /** Forgets all cached content, unless somebody uses a part of it; whether it did. Nothing of it is reported. */
  resetPrefixCache(): boolean {
    return this.#kv.reset();
  }

  /** Leading blocks of a chain that the cache holds now. */
  cachedPrefixBlocks(hashes: Int32Array): number {
    return this.#config.prefixCaching ? this.#kv.prefixBlocks(hashes, hashes.length >> 1) : 0;
  }

  /** Tokens that the request has so far; undefined if it is not here. */
  outputTokens(id: string): number | undefined {
    const sequence = this.#roster.find(id);
    if (sequence === undefined) return undefined;
    if (!sequence.inCohort) return sequence.generated;
    const { cohort } = this.#scheduler;
    return cohort.generatedBy(cohort.rowOf(sequence)) + (this.#run.active ? this.#run.ended : 0);
  }

  /** A step that is composed runs even if all its requests have gone. */
  #hasWork(): boolean {
    const { running, waiting, fetches } = this.#scheduler;
    return this.#prepared || (!this.#stalled && running.length + waiting.size + fetches.fetched.length > 0);
  }

  #startStep(at: Micros): void {
    if (this.#planner.begin(at, this.#roster.nextVisibleAt(), this.#prepared ? this.#next : undefined)) {
      this.#advanceRun(at);
      return;
    }
    if (!this.#compose(at)) return;
    this.#stepEndAt = at + this.#timer.duration(this.#current.shape, at) + Math.trunc(this.#current.transferMicros);
    this.#begin(at);
  }

  /** Whether the current step is one. */
  #compose(at: Micros): boolean {
    if (this.#prepared) this.#takePrepared();
    else this.#stalled = !this.#scheduler.compose(at, this.#current, undefined);
    return !this.#stalled;
  }

  #begin(at: Micros): void {
    this.#steps++;
    this.#sink.step?.(at, this.#stepEndAt, this.#current.shape);
    this.#executing = true;
    if (this.#config.asyncScheduling) {
      this.#scheduler.compose(at, this.#next, this.#current);
      this.#prepared = this.#next.members > 0;
    } else if (this.#early) {
      this.#settlement.settle(this.#current, at, this.#stepEndAt);
      this.#executing = this.#hasWork();
      this.#readyAt = this.#executing ? this.#stepEndAt : at;
    }
    if (this.#config.check) this.#verify();
  }

  #takePrepared(): void {
    const spent = this.#current;
    this.#current = this.#next;
    this.#next = spent;
    this.#prepared = false;
  }

  #endStep(at: Micros): void {
    this.#executing = false;
    if (this.#early) return;
    this.#settlement.settle(this.#current, at, at);
    this.#readyAt = this.#timer.readyAfter(at, this.#current.shape);
    if (this.#config.check) this.#verify();
  }

  /** Takes the run through everything up to `at`; it is over when its last step has started. */
  #advanceRun(at: Micros): void {
    const run = this.#run;
    const before = run.started;
    run.advance(at, this.#began);
    this.#steps += run.started - before;
    if (run.exhausted) this.#endRun();
  }

  #runStepped(at: Micros): void {
    const run = this.#run;
    run.describe(this.#current, run.started - 1);
    this.#sink.step?.(at, run.stepEndAt, this.#current.shape);
  }

  /** Back to single steps, in the middle of one or between two. */
  #endRun(): void {
    const run = this.#run;
    this.#settlement.generationTokens += run.ended * run.members;
    this.#executing = run.executing;
    if (this.#executing) this.#stepEndAt = run.stepEndAt;
    else this.#readyAt = run.nextStartAt;
    run.collapse(this.#current, this.#next);
    if (this.#config.check) this.#verify();
  }

  #dismiss(at: Micros, sequence: Sequence, reason: FinishReason): void {
    if (this.#run.active && sequence.state !== "arriving") this.#endRun();
    this.#stalled = false;
    if (sequence.inCohort) {
      const current = this.#executing ? this.#current : undefined;
      this.#scheduler.cohort.breakUp(current, this.#prepared ? this.#next : undefined);
    }
    this.#settlement.dismiss(at, sequence, reason, this.#executing && !this.#early);
  }

  #verify(): void {
    verifyEngine(this.#config, this.#kv, this.#scheduler, this.#settlement.held);
  }
}
