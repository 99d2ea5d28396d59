import { assert } from "#core/base/assert.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { Hold } from "#engine/block-fetch.ts";
import type { EngineRequest, FinishReason } from "#engine/request.ts";
import type { EngineGauges, EngineSink } from "#engine/sink.ts";
import { EmulatorClock } from "./engine-clock.ts";
import { ENGINE_DEAD } from "../http/api-error.ts";
import { engineRequest } from "../generation/engine-request.ts";
import { isComplete, type SequencesAnswer, type EmulatedSequence } from "../generation/sequence.ts";
import type { HostCounts } from "./host-counts.ts";
import type { KvTransfer } from "../kv-transfer/kv-transfer.ts";
import type { KvPublisher } from "../kv-events/publisher.ts";
import type { AdapterMetrics } from "../metrics/adapter-metrics.ts";
import type { EngineMetrics } from "../metrics/engine-metrics.ts";
import { StepTokens } from "./step-tokens.ts";
import type { HostLag } from "./step-lateness.ts";

interface Flight {
  readonly sequence: EmulatedSequence;
  readonly answer: SequencesAnswer;
}

/**
 * Runs the pure engine on the wall clock, from event to event; whatever became ready together reaches each client in one
 * write.
 */
export class EngineHost {
  readonly config: EngineConfig;
  /** Undefined where no KV events are published. */
  readonly publisher: KvPublisher | undefined;
  /** Undefined without a KV connector. */
  readonly kvTransfer: KvTransfer | undefined;
  readonly #engine: Engine;
  readonly #metrics: EngineMetrics;
  readonly #adapters: AdapterMetrics | undefined;
  readonly #timeScale: number;
  readonly #clock: EmulatorClock;
  readonly #flights = new Map<string, Flight>();
  readonly #dirty = new Set<SequencesAnswer>();
  /** Sequences that a fault ended and the engine still has to give up. */
  readonly #doomed: string[] = [];
  #engineAt: Micros = 0;
  readonly #steps: StepTokens;
  #waitingTokens = 0;
  #dead = false;
  readonly #counts = { arrived: 0, finished: 0, aborted: 0, failed: 0 };

  constructor(
    config: EngineConfig,
    timeScale: number,
    metrics: EngineMetrics,
    adapters: AdapterMetrics | undefined,
    publisher?: KvPublisher,
    kvTransfer?: KvTransfer,
  ) {
    this.publisher = publisher;
    this.kvTransfer = kvTransfer;
    // Every token is a write to a client, so none may be skipped.
    this.config = { ...config, coalesce: false };
    this.#timeScale = timeScale;
    this.#clock = new EmulatorClock(timeScale, (at) => {
      this.#advance(Math.max(this.#engineAt, at));
      this.#settle();
    });
    this.#metrics = metrics;
    this.#steps = new StepTokens(metrics);
    this.#adapters = adapters;
    this.#engine = new Engine(this.config, this.#sink());
  }

  get counts(): HostCounts {
    return { ...this.#counts, inFlight: this.#flights.size };
  }

  get gauges(): EngineGauges {
    return this.#engine.gauges();
  }

  get lag(): HostLag {
    return this.#clock.lag;
  }

  /** Prompt tokens of requests that have not been scheduled. */
  get waitingTokens(): number {
    return this.#waitingTokens;
  }

  get idle(): boolean {
    return this.#flights.size === 0;
  }

  /** Engine time as wall-clock seconds. */
  readonly toSeconds = (micros: Micros): number => micros / this.#timeScale / MICROS_PER_SECOND;

  submit(answer: SequencesAnswer): void {
    if (this.#dead) {
      answer.fail(ENGINE_DEAD);
      return;
    }
    const at = this.#advance(this.#now());
    for (const sequence of answer.sequences) this.#submitOne(at, sequence, answer);
    // An idle engine starts on it now, not when a timer comes round.
    this.#advance(at);
    this.#settle();
  }

  /** Takes an answer back whose client has gone. Nothing more is written for it. */
  cancel(answer: SequencesAnswer): void {
    if (isComplete(answer)) return;
    const at = this.#advance(this.#now());
    for (const { id, finish } of answer.sequences) if (finish === undefined) this.#engine.abort(at, id);
    this.#dirty.delete(answer);
    this.#settle();
  }

  /** Ends every answer with "abort", as a server does on SIGTERM. */
  abortAll(): void {
    const at = this.#advance(this.#now());
    for (const id of Array.from(this.#flights.keys())) this.#engine.abort(at, id);
    this.#settle();
  }

  /** Forgets what is cached; false where requests run, or a step with one that was taken back. */
  resetPrefixCache(): boolean {
    this.#advance(this.#now());
    const isReset = this.#engine.resetPrefixCache();
    if (isReset) this.publisher?.cleared();
    this.#settle();
    return isReset;
  }

  /** Blocks that were held for another engine are not any more. */
  giveBack(hold: Hold): void {
    if (this.#dead) return;
    hold.release(this.#advance(this.#now()));
    this.#settle();
  }

  /** The engine process dies: every answer fails, and so does whatever comes later. */
  kill(): void {
    this.#dead = true;
    this.stop();
    const answers = new Set([...this.#flights.values()].map((flight) => flight.answer));
    this.#counts.failed += this.#flights.size;
    this.#flights.clear();
    this.#waitingTokens = 0;
    for (const answer of answers) answer.fail(ENGINE_DEAD);
  }

  /** Stops the clock for good: no step ends from here on. */
  stop(): void {
    this.#clock.stop();
    this.publisher?.close();
    this.kvTransfer?.stop();
  }

  /** Its steps stand still, until `thaw`. */
  freeze(): void {
    this.#advance(this.#now());
    this.#clock.freeze();
    this.#settle();
  }

  thaw(): void {
    this.#clock.thaw();
    this.#settle();
  }

  #now(): Micros {
    return Math.max(this.#engineAt, this.#clock.now());
  }

  #submitOne(at: Micros, sequence: EmulatedSequence, answer: SequencesAnswer): void {
    sequence.arrivedAt = at;
    this.#counts.arrived++;
    if (sequence.abortAfterTokens === 0) {
      sequence.finish = "abort";
      this.#counts.aborted++;
      this.#dirty.add(answer);
      return;
    }
    this.#flights.set(sequence.id, { sequence, answer });
    this.#waitingTokens += sequence.prompt.length;
    if (sequence.adapter !== "") this.#adapters?.queued(sequence.adapter);
    const outcome = this.#engine.submit(at, engineRequest(sequence));
    assert(outcome === "queued", `a request that passed validation is queued, not ${outcome}`);
  }

  #advance(at: Micros): Micros {
    if (!this.#dead) this.#engine.advanceTo(at);
    this.#engineAt = at;
    return at;
  }

  /** After anything that may have changed the engine: gives up the doomed, writes to clients, sets the timer. */
  #settle(): void {
    for (const id of this.#doomed.splice(0)) this.#engine.abort(this.#engineAt, id);
    this.#steps.count();
    this.publisher?.flush();
    this.#adapters?.touch();
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    for (const answer of dirty) answer.advance();
    this.#clock.arm(this.#engine.nextEventAt());
  }

  #sink(): EngineSink {
    return {
      admitted: (at, request, cachedTokens) => this.#onAdmitted(at, request, cachedTokens),
      token: (at, request, outputTokens) => this.#onToken(at, request, outputTokens),
      preempted: (_at, request) => {
        const flight = this.#flights.get(request.id);
        if (flight !== undefined) flight.sequence.preemptions++;
      },
      finished: (at, request, reason) => this.#onFinished(at, request, reason),
      held: (_at, request, hold) => {
        const flight = this.#flights.get(request.id);
        if (flight !== undefined) this.kvTransfer?.hold(flight.sequence, hold);
      },
      ...this.publisher?.sink((id) => this.#flights.get(id)?.sequence),
    };
  }

  #onAdmitted(at: Micros, request: EngineRequest, cachedTokens: number): void {
    const sequence = this.#flights.get(request.id)?.sequence;
    if (sequence === undefined || sequence.scheduledAt >= 0) return;
    sequence.scheduledAt = at;
    sequence.cachedTokens = cachedTokens;
    this.#waitingTokens -= sequence.prompt.length;
    this.#metrics.admitted(sequence);
    if (sequence.adapter !== "") this.#adapters?.admitted(sequence.adapter);
  }

  #onToken(at: Micros, request: EngineRequest, outputTokens: number): void {
    const flight = this.#flights.get(request.id);
    if (flight === undefined || flight.sequence.finish !== undefined) return;
    const { sequence, answer } = flight;
    const produced = Math.min(outputTokens, sequence.plan.tokens.length);
    this.#steps.add(at, sequence, produced - sequence.produced);
    if (sequence.firstTokenAt < 0) {
      sequence.firstTokenAt = at;
      this.#metrics.firstToken(sequence, this.toSeconds(at - sequence.arrivedAt));
    } else {
      this.#metrics.laterTokens(produced - sequence.produced, this.toSeconds(at - sequence.lastTokenAt));
    }
    sequence.produced = produced;
    sequence.lastTokenAt = at;
    if (answer.everyToken) this.#dirty.add(answer);
    if (sequence.abortAfterTokens !== undefined && outputTokens >= sequence.abortAfterTokens) {
      sequence.finish = "abort";
      this.#dirty.add(answer);
      this.#doomed.push(sequence.id);
    }
  }

  #onFinished(_at: Micros, request: EngineRequest, reason: FinishReason): void {
    const flight = this.#flights.get(request.id);
    if (flight === undefined) return;
    this.#flights.delete(request.id);
    const { sequence, answer } = flight;
    sequence.fetch?.end();
    if (sequence.scheduledAt < 0) this.#waitingTokens -= sequence.prompt.length;
    if (sequence.adapter !== "") this.#adapters?.left(sequence.adapter, sequence.scheduledAt >= 0);
    if (reason === "abort" || reason === "deadline" || sequence.finish === "abort") {
      this.#counts.aborted++;
      sequence.finish ??= "abort";
    } else {
      this.#counts.finished++;
      sequence.finish = reason === "length" ? "length" : sequence.plan.finish;
      this.#countFinished(sequence, sequence.finish);
    }
    this.#dirty.add(answer);
  }

  #countFinished(sequence: EmulatedSequence, finish: "stop" | "length"): void {
    this.#metrics.finished(sequence, finish, this.toSeconds);
    const { group } = sequence;
    group.producedMax = Math.max(group.producedMax, sequence.produced);
    if (--group.open === 0) this.#metrics.groupFinished(group.n, group.producedMax);
  }
}
