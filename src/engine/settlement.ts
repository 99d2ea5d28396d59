import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "./config.ts";
import type { KvCache } from "./kv-cache.ts";
import type { Outbox } from "./outbox.ts";
import type { FinishReason } from "./request.ts";
import type { Roster } from "./roster.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";
import type { EngineSink } from "./sink.ts";
import type { Hold } from "./block-fetch.ts";
import type { Step } from "./step.ts";

/** What steps result in: tokens, requests that are done, and requests that were taken back while a step ran. */
export class Settlement {
  finished = 0;
  promptTokens = 0;
  generationTokens = 0;
  preemptionsReported = 0;
  readonly #config: EngineConfig;
  readonly #kv: KvCache;
  readonly #scheduler: Scheduler;
  readonly #roster: Roster;
  readonly #outbox: Outbox;
  readonly #sink: EngineSink;
  readonly #leaving: Sequence[] = [];
  /** Requests that ended and whose blocks are still to be fetched. */
  readonly held = new Set<Sequence>();
  readonly #released: (at: Micros, sequence: Sequence) => void;

  constructor(
    config: EngineConfig,
    kv: KvCache,
    scheduler: Scheduler,
    roster: Roster,
    outbox: Outbox,
    sink: EngineSink,
    released: (at: Micros, sequence: Sequence) => void,
  ) {
    this.#released = released;
    this.#config = config;
    this.#kv = kv;
    this.#scheduler = scheduler;
    this.#roster = roster;
    this.#outbox = outbox;
    this.#sink = sink;
  }

  /** Settles a step: `at` is when blocks come free, `outAt` when clients are notified. */
  settle(step: Step, at: Micros, outAt: Micros): void {
    const finishedBefore = this.finished;
    if (this.#leaving.length > 0) {
      for (const sequence of this.#leaving) this.#retire(sequence, at);
      this.#leaving.length = 0;
    }
    const { cohort } = this.#scheduler;
    const cohortEnds = cohort.settle(step);
    this.generationTokens += step.cohort;
    if (cohortEnds) this.#completeRows(at, outAt);
    for (let i = 0; i < step.yields; i++) {
      const sequence = step.yieldingAt(i);
      if (sequence === undefined) continue;
      if (sequence.inCohort) this.#beganIn(sequence, at, outAt);
      else this.#produce(sequence, at, outAt);
      if (!sequence.inCohort && sequence.generated === sequence.target) this.#complete(sequence, at, outAt);
    }
    if (cohortEnds) cohort.dropDone(this.#scheduler.running);
    if (this.finished > finishedBefore) this.#scheduler.dropEnded();
  }

  /** Those of the cohort that got their last token. */
  #completeRows(at: Micros, outAt: Micros): void {
    const { cohort, running } = this.#scheduler;
    for (let row = 0; row < cohort.size; row++) {
      if (!cohort.isDone(row)) continue;
      const sequence = running[row] as Sequence;
      cohort.refresh(row);
      sequence.inCohort = false;
      if (this.#config.asyncScheduling) this.#kv.store(sequence, sequence.computed, at);
      this.#outbox.token(at, outAt, sequence.request, sequence.generated);
      this.#complete(sequence, at, outAt);
    }
  }

  /** A token of a step that was composed before the cohort took the request in. */
  #beganIn(sequence: Sequence, at: Micros, outAt: Micros): void {
    const { cohort } = this.#scheduler;
    const generated = cohort.generatedBy(cohort.rowOf(sequence));
    this.#counts(sequence, generated);
    if (generated === 1) this.#outbox.token(at, outAt, sequence.request, 1);
  }

  #counts(sequence: Sequence, generated: number): void {
    if (generated === 1) this.promptTokens += sequence.request.promptTokens;
    this.preemptionsReported += sequence.preemptions;
    sequence.preemptions = 0;
    this.generationTokens++;
  }

  /**
   * The client has gone: it is notified at once. The request itself goes now, or with `deferred` when the step that runs
   * has ended, since an engine looks at its queue between steps only.
   */
  dismiss(at: Micros, sequence: Sequence, reason: FinishReason, deferred: boolean): void {
    const { request, cachedTokens } = sequence;
    if (sequence.state === "running" && deferred) {
      sequence.leaving = true;
      this.#leaving.push(sequence);
      this.#roster.forget(sequence);
    } else {
      const wasRunning = sequence.state === "running";
      if (sequence.state === "arriving" || sequence.state === "fetching") this.#roster.removeArriving(sequence);
      this.#scheduler.fetches.forget(sequence);
      if (sequence.state === "waiting") this.#scheduler.waiting.remove(sequence);
      this.#retire(sequence, at);
      if (wasRunning) this.#scheduler.dropEnded();
    }
    this.#sink.released?.(at, request);
    this.#outbox.hurry(request);
    this.#sink.finished(at, request, reason, Math.max(0, cachedTokens));
  }

  #produce(sequence: Sequence, at: Micros, outAt: Micros): void {
    sequence.generated++;
    sequence.pending--;
    this.#counts(sequence, sequence.generated);
    if (this.#config.asyncScheduling && sequence.state === "running")
      this.#kv.store(sequence, sequence.computed - sequence.pending, at);
    const last = sequence.generated === sequence.target;
    if (!this.#config.coalesce || sequence.generated === 1 || last) {
      this.#outbox.token(at, outAt, sequence.request, sequence.generated);
    }
  }

  #complete(sequence: Sequence, at: Micros, outAt: Micros): void {
    if (this.#config.semantics.finalToken === "stored" && sequence.request.outputTokens > 0)
      this.#storeFinalToken(sequence, at);
    const { request, cachedTokens, target } = sequence;
    if (sequence.state === "waiting") this.#scheduler.waiting.remove(sequence);
    if (request.holds === true) this.#hold(sequence, at);
    else this.#retire(sequence, at);
    this.#sink.released?.(at, request);
    this.#outbox.finished(at, outAt, request, target < request.outputTokens ? "length" : "stop", cachedTokens);
  }

  /** Its place and its id are free; its blocks are not. */
  #hold(sequence: Sequence, at: Micros): void {
    const { request } = sequence;
    this.#roster.forget(sequence);
    sequence.state = "held";
    this.finished++;
    const hold = new BlockHold(request.promptTokens, (releasedAt) => this.#released(releasedAt, sequence));
    this.held.add(sequence);
    this.#sink.held?.(at, request, hold);
  }

  #storeFinalToken(sequence: Sequence, at: Micros): void {
    const lacking = this.#kv.lacking(sequence, sequence.tokens);
    if (lacking > this.#kv.free) return;
    this.#kv.take(sequence, lacking, at);
    this.#kv.store(sequence, sequence.tokens, at);
  }

  #retire(sequence: Sequence, at: Micros): void {
    this.#kv.release(sequence, at);
    this.#roster.retire(sequence);
    this.finished++;
  }
}

class BlockHold implements Hold {
  readonly tokens: number;
  #release: ((at: Micros) => void) | undefined;

  constructor(tokens: number, release: (at: Micros) => void) {
    this.tokens = tokens;
    this.#release = release;
  }

  release(at: Micros): boolean {
    const release = this.#release;
    this.#release = undefined;
    release?.(at);
    return release !== undefined;
  }
}
