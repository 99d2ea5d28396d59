import { assert } from "#core/assert.ts";
import type { Micros } from "#core/units.ts";
import { ArrivalQueue } from "./arrival-queue.ts";
import type { EngineConfig } from "./config.ts";
import { DeadlineHeap } from "./deadline-heap.ts";
import { DecodeRun } from "./decode-run.ts";
import { KvCache } from "./kv-cache.ts";
import { Outbox } from "./outbox.ts";
import type { EngineRequest, FinishReason, SubmitOutcome } from "./request.ts";
import { RunPlanner } from "./run-planner.ts";
import { Scheduler } from "./scheduler.ts";
import { Sequence } from "./sequence.ts";
import type { EngineGauges, EngineSink } from "./sink.ts";
import { StepTimer } from "./step-timer.ts";
import { clearShape } from "./step-time/batch-shape.ts";

/**
 * One vLLM engine as a state machine over time. The host submits and aborts, asks when something will happen next and
 * advances; the engine reports through its sink. At one instant: a step ends, requests become visible, the next step
 * starts, deadlines pass. A request submitted at t before advanceTo(t) can be in the step that starts at t.
 */
export class Engine {
  readonly #config: EngineConfig;
  readonly #sink: EngineSink;
  readonly #kv: KvCache;
  readonly #scheduler: Scheduler;
  readonly #timer: StepTimer;
  readonly #run: DecodeRun;
  readonly #planner: RunPlanner;
  readonly #outbox: Outbox;
  readonly #arrivals = new ArrivalQueue();
  readonly #deadlines = new DeadlineHeap();
  readonly #active = new Map<string, Sequence>();
  readonly #pool: Sequence[] = [];
  readonly #leaving: Sequence[] = [];
  readonly #early: boolean;
  #clock: Micros = 0;
  #submissions = 0;
  /** A step runs until #stepEndAt, or none does and the next may start at #readyAt. */
  #executing = false;
  #stepEndAt: Micros = 0;
  #readyAt: Micros = 0;
  #steps = 0;
  #finished = 0;
  #promptTokens = 0;
  #generationTokens = 0;

  constructor(config: EngineConfig, sink: EngineSink) {
    this.#config = config;
    this.#sink = sink;
    this.#kv = new KvCache(config, sink);
    this.#scheduler = new Scheduler(config, this.#kv, sink);
    this.#timer = new StepTimer(config);
    this.#readyAt = this.#timer.firstReadyAt();
    this.#run = new DecodeRun(this.#kv);
    this.#planner = new RunPlanner(config, this.#kv, this.#scheduler, this.#timer, this.#run);
    this.#early = config.semantics.completion === "last-step-start";
    this.#outbox = new Outbox(sink);
  }

  /** Hands over a request. It is visible to the scheduler after the queueing delay. */
  submit(at: Micros, request: EngineRequest): SubmitOutcome {
    assert(at >= this.#clock, "time does not run backwards");
    this.#clock = at;
    const { promptTokens } = request;
    const target = Math.min(request.outputTokens, this.#config.modelTokensMax - promptTokens);
    if (target < 1) return "too-long";
    if (Math.ceil((promptTokens + target - 1) / this.#config.blockTokens) > this.#kv.usable) return "never-fits";
    if (request.deadlineAt !== undefined && request.deadlineAt <= at) return "expired";
    if (this.#active.has(request.id)) return "duplicate";

    const { baseMicros, perPromptTokenMicros } = this.#config.queueDelay;
    const visibleAt = at + Math.trunc(baseMicros + perPromptTokenMicros * promptTokens);
    const sequence = this.#pool.pop() ?? new Sequence();
    sequence.reset(request, this.#submissions++, at, visibleAt, target);
    this.#active.set(request.id, sequence);
    this.#arrivals.push(sequence);
    if (request.deadlineAt !== undefined) this.#deadlines.push(request.deadlineAt, sequence);
    this.#planner.arrival(visibleAt);
    if (this.#run.active && this.#run.exhausted) this.#endRun();
    return "queued";
  }

  /** Takes a request back; false if it is not here. Its full blocks stay cached. */
  abort(at: Micros, id: string): boolean {
    this.advanceTo(at);
    const sequence = this.#active.get(id);
    if (sequence === undefined || sequence.leaving) return false;
    this.#dismiss(at, sequence, "abort");
    return true;
  }

  /** When something may happen next; undefined while there is nothing to do. */
  nextEventAt(): Micros | undefined {
    let next = Infinity;
    if (this.#run.active) next = this.#run.lastEndAt;
    else if (this.#executing) next = this.#stepEndAt;
    else if (this.#scheduler.running.length + this.#scheduler.waiting.size > 0) {
      next = Math.max(this.#readyAt, this.#clock);
    } else {
      const arrival = this.#arrivals.peek();
      if (arrival !== undefined) next = Math.max(this.#readyAt, arrival.visibleAt);
    }
    next = Math.min(next, this.#deadlines.nextAt() ?? Infinity, this.#outbox.nextAt());
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
      if (this.#idle() && this.#readyAt <= next && this.#hasWork()) this.#startStep(next);
      while ((this.#deadlines.nextAt() ?? Infinity) <= next) this.#dismiss(next, this.#deadlines.take(), "deadline");
    }
    if (this.#run.active) this.#advanceRun(at);
    if (at > this.#clock) this.#clock = at;
    this.#receive(at);
  }

  gauges(): EngineGauges {
    const { running, waiting } = this.#scheduler;
    return {
      running: running.length,
      waiting: waiting.size,
      kvUtilization: this.#kv.used / this.#kv.usable,
      kvBlocksUsed: this.#kv.used,
      kvBlocksFree: this.#kv.free,
      prefixQueriesTokens: this.#scheduler.prefixQueriesTokens,
      prefixHitsTokens: this.#scheduler.prefixHitsTokens,
      promptTokens: this.#promptTokens,
      generationTokens: this.#generationTokens + (this.#run.active ? this.#run.ended * this.#run.members : 0),
      preemptions: this.#scheduler.preemptions,
      steps: this.#steps,
      finished: this.#finished,
      blockHits: this.#kv.blockHits,
      blockMisses: this.#kv.blockMisses,
    };
  }

  /** Leading blocks of a chain that the cache holds now. */
  cachedPrefixBlocks(lanes: Int32Array): number {
    return this.#config.prefixCaching ? this.#kv.prefixBlocks(lanes, lanes.length >> 1) : 0;
  }

  /** Tokens that the request has so far; undefined if it is not here. */
  outputTokens(id: string): number | undefined {
    const sequence = this.#active.get(id);
    if (sequence === undefined) return undefined;
    return sequence.generated + (this.#run.active && sequence.state === "running" ? this.#run.ended : 0);
  }

  #idle(): boolean {
    return !this.#executing && !this.#run.active;
  }

  #hasWork(): boolean {
    return this.#scheduler.running.length + this.#scheduler.waiting.size > 0;
  }

  /** Moves the requests that have become visible into the waiting queue. */
  #receive(at: Micros): void {
    for (let next = this.#arrivals.peek(); next !== undefined && next.visibleAt <= at; next = this.#arrivals.peek()) {
      this.#arrivals.shift();
      next.state = "waiting";
      this.#scheduler.waiting.push(next);
    }
  }

  #startStep(at: Micros): void {
    if (this.#planner.begin(at, this.#arrivals.peek()?.visibleAt ?? Infinity)) {
      this.#advanceRun(at);
      return;
    }
    this.#scheduler.compose(at);
    const { shape } = this.#scheduler;
    this.#stepEndAt = at + this.#timer.duration(shape);
    this.#steps++;
    this.#sink.step?.(at, this.#stepEndAt, shape);
    this.#executing = true;
    if (this.#early) {
      this.#settle(at, this.#stepEndAt);
      this.#executing = this.#hasWork();
      this.#readyAt = this.#executing ? this.#stepEndAt : at;
    }
    if (this.#config.check) this.#verify();
  }

  /** Takes the run through everything up to `at`; it is over when its last step has started. */
  #advanceRun(at: Micros): void {
    const run = this.#run;
    for (;;) {
      if (run.executing) {
        if (run.stepEndAt > at) return;
        run.ended++;
      }
      const startAt = run.nextStartAt;
      if (startAt > at) return;
      run.start(startAt);
      this.#steps++;
      this.#describeRunStep();
      this.#sink.step?.(startAt, run.stepEndAt, this.#scheduler.shape);
      if (run.exhausted) {
        this.#endRun();
        return;
      }
    }
  }

  /** The shape of the run's step that started last. */
  #describeRunStep(): void {
    const { shape } = this.#scheduler;
    clearShape(shape);
    shape.decodeSequences = this.#run.members;
    shape.decodeContextTokens = this.#run.contextTokens + (this.#run.started - 1) * this.#run.members;
  }

  /** Back to single steps, in the middle of one or between two. */
  #endRun(): void {
    const run = this.#run;
    this.#generationTokens += run.ended * run.members;
    this.#executing = run.executing;
    if (this.#executing) this.#stepEndAt = run.stepEndAt;
    else this.#readyAt = run.nextStartAt;
    run.collapse();
    if (this.#config.check) this.#verify();
  }

  #endStep(at: Micros): void {
    this.#executing = false;
    if (this.#early) return;
    this.#settle(at, at);
    this.#readyAt = this.#timer.readyAfter(at, this.#scheduler.shape);
    if (this.#config.check) this.#verify();
  }

  /** The results of a step: tokens, and who is done. `at` is when blocks come free, `outAt` when clients hear of it. */
  #settle(at: Micros, outAt: Micros): void {
    const { running } = this.#scheduler;
    let kept = 0;
    for (const sequence of running) {
      if (sequence.inStep && !sequence.leaving && sequence.computed === sequence.tokens) this.#produce(sequence, outAt);
      sequence.inStep = false;
      sequence.scheduled = 0;
      sequence.hitChunk = false;
      if (sequence.generated < sequence.target || sequence.leaving) running[kept++] = sequence;
      else this.#complete(sequence, at, outAt);
    }
    running.length = kept;
    for (const sequence of this.#leaving) this.#remove(sequence);
    this.#leaving.length = 0;
  }

  #produce(sequence: Sequence, outAt: Micros): void {
    if (sequence.generated === 0) this.#promptTokens += sequence.request.promptTokens;
    sequence.generated++;
    sequence.decoding = true;
    this.#generationTokens++;
    const last = sequence.generated === sequence.target;
    if (!this.#config.coalesce || sequence.generated === 1 || last) {
      this.#outbox.token(this.#clock, outAt, sequence.request, sequence.generated);
    }
  }

  #complete(sequence: Sequence, at: Micros, outAt: Micros): void {
    if (this.#config.semantics.finalToken === "stored") this.#storeFinalToken(sequence, at);
    const { request, cachedTokens } = sequence;
    this.#release(sequence);
    this.#sink.released?.(at, request);
    this.#outbox.finished(
      this.#clock,
      outAt,
      request,
      sequence.target < request.outputTokens ? "length" : "stop",
      cachedTokens,
    );
  }

  #storeFinalToken(sequence: Sequence, at: Micros): void {
    const lacking = this.#kv.lacking(sequence, sequence.tokens);
    if (lacking > this.#kv.free) return;
    this.#kv.take(sequence, lacking, at);
    this.#kv.store(sequence, sequence.tokens, at);
  }

  /** A client has gone: tell so at once, and let go of the request as soon as no running step needs it. */
  #dismiss(at: Micros, sequence: Sequence, reason: FinishReason): void {
    if (this.#run.active && sequence.state !== "arriving") this.#endRun();
    const { request, cachedTokens } = sequence;
    const busy = sequence.state === "running" && this.#executing && !this.#early;
    if (busy) {
      sequence.leaving = true;
      this.#leaving.push(sequence);
      this.#active.delete(request.id);
    } else {
      if (sequence.state === "arriving") this.#arrivals.remove(sequence);
      else if (sequence.state === "waiting") this.#scheduler.waiting.remove(sequence);
      else this.#scheduler.running.splice(this.#scheduler.running.indexOf(sequence), 1);
      this.#release(sequence);
    }
    this.#sink.released?.(at, request);
    this.#sink.finished(at, request, reason, Math.max(0, cachedTokens));
  }

  #remove(sequence: Sequence): void {
    this.#scheduler.running.splice(this.#scheduler.running.indexOf(sequence), 1);
    this.#release(sequence);
  }

  #release(sequence: Sequence): void {
    this.#kv.release(sequence);
    if (this.#active.get(sequence.request.id) === sequence) this.#active.delete(sequence.request.id);
    sequence.state = "ended";
    this.#finished++;
    this.#pool.push(sequence);
  }

  #verify(): void {
    this.#kv.verify(this.#scheduler.running);
    assert(this.#scheduler.running.length <= this.#config.sequencesMax, "the batch is within its limit");
    for (const sequence of this.#scheduler.running) {
      assert(sequence.state === "running", "a request in the batch runs");
      assert(sequence.computed <= sequence.tokens, "only existing tokens are computed");
    }
  }
}
