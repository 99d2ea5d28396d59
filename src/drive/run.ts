import { nameHash, randomFor } from "#core/base/random.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND, MILLIS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { WorkloadFit } from "#trace/import/fit-workload.ts";
import { Schedule, type Due } from "#trace/schedule.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { DriveExchange } from "./exchange.ts";
import { isFailure, type ExchangeResult, type SentOutcome } from "./exchange-result.ts";
import type { DriveOptions } from "./options.ts";
import { PromptWriter } from "./prompt-writer.ts";
import { requestBody } from "./request-body.ts";
import { RequestLog } from "./request-log.ts";
import { SampleLog } from "./sample-log.ts";
import type { DriveTarget } from "./target.ts";

/** The workload is read so far ahead of what is due. */
const LOOKAHEAD_MICROS = MICROS_PER_SECOND;
/** Requests that are read and not sent; reading stops there. */
const PENDING_MAX = 100_000;
/** A longer sleep is cut into such pieces, so that the end of the run is noticed. */
const SLEEP_MILLIS_MAX = 1_000;
/** A request that is closed on purpose before its first token, or that has no stream, is closed within so long. */
const EARLY_ABORT_MILLIS_MAX = 50;
const MESSAGE_CHARS_MAX = 300;

interface ClosingPlan {
  readonly afterChunks: number | undefined;
  /** 0 for never. */
  readonly afterMillis: number;
  readonly outcome: "aborted" | "timeout";
}

/** Sends a workload to its targets. Times are microseconds since `start`. */
export class DriveRun {
  readonly samples = new SampleLog();
  readonly failureMessages = new Map<SentOutcome, string>();
  sent = 0;
  /** Sent late because `concurrency` requests were in flight. */
  heldByConcurrency = 0;
  /** Conversations that began late because `activeSessionsMax` others were under way. */
  sessionsHeld = 0;
  #fullUntilMicros = -1;
  readonly #options: DriveOptions;
  readonly #targets: readonly DriveTarget[];
  readonly #model: string;
  readonly #schedule: Schedule;
  readonly #prompts: PromptWriter;
  readonly #requestLog: RequestLog | undefined;
  readonly #inFlight = new Set<DriveExchange>();
  readonly #start = performance.now();
  readonly #headers: readonly string[];
  #timer: NodeJS.Timeout | undefined;
  #stopping = false;
  #wake: (() => void) | undefined;

  constructor(options: DriveOptions, targets: readonly DriveTarget[], model: string) {
    this.#options = options;
    this.#targets = targets;
    this.#model = model;
    this.#schedule = new Schedule(options);
    this.#prompts = new PromptWriter({ ...options, form: options.promptForm });
    this.#requestLog = options.requestsOut === undefined ? undefined : new RequestLog(options.requestsOut);
    this.#headers = ["content-type", "application/json", ...Object.entries(options.headers).flat()];
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  get notSent(): number {
    return this.#schedule.size;
  }

  get failed(): number {
    return this.samples.outcomes.reduce((sum, outcome) => sum + (isFailure(outcome) ? 1 : 0), 0);
  }

  now(): Micros {
    return Math.round((performance.now() - this.#start) * MICROS_PER_MILLI);
  }

  /** No new requests from here on. */
  stop(): void {
    this.#stopping = true;
    this.#wake?.();
  }

  /** Closes what is in flight; it is reported as cancelled. */
  cancel(): void {
    this.stop();
    for (const exchange of this.#inFlight) exchange.close("cancelled");
  }

  /** Reads and sends until the workload, the duration or the number of requests is over, then drains. */
  async all(requests: AsyncIterable<WorkloadRequest>, fit: WorkloadFit): Promise<void> {
    const over = Number.isFinite(this.#options.durationSeconds)
      ? setTimeout(() => this.stop(), this.#options.durationSeconds * MILLIS_PER_SECOND)
      : undefined;
    try {
      let read = 0;
      for await (const request of requests) {
        const fitted = fit.fit(request);
        const held = await this.#untilRoom(fitted ?? request);
        if (this.#stopping) break;
        if (held) this.sessionsHeld++;
        const planned = { request: fitted ?? request, send: fitted !== undefined };
        this.#schedule.add(planned, this.now(), held ? this.now() : 0);
        this.#pump();
        if (++read >= this.#options.requestsMax) break;
      }
      while (!this.#stopping && (this.#schedule.size > 0 || this.#inFlight.size > 0)) await this.#changed();
    } finally {
      clearTimeout(over);
      clearTimeout(this.#timer);
      this.#stopping = true;
    }
    await this.#drain();
    this.#requestLog?.close();
  }

  async #drain(): Promise<void> {
    const deadline = this.now() + this.#options.drainSeconds * MICROS_PER_SECOND;
    while (this.#inFlight.size > 0 && this.now() < deadline) await this.#changed();
    this.cancel();
    while (this.#inFlight.size > 0) await this.#changed();
  }

  /**
   * A first turn waits until it is nearly due and a conversation may start; follow-up turns come with theirs. True when
   * it was due and had to wait for another conversation to end.
   */
  async #untilRoom(request: WorkloadRequest): Promise<boolean> {
    let held = false;
    const isHead = request.thinkMicros === undefined;
    const startsSession = isHead && request.session !== "";
    while (!this.#stopping) {
      const early = isHead && this.#schedule.arrivalDue(request) - this.now() > LOOKAHEAD_MICROS;
      const crowded = startsSession && this.#schedule.activeSessions >= this.#options.activeSessionsMax;
      if (!early && !crowded && (!isHead || this.#schedule.size < PENDING_MAX)) return held;
      held ||= crowded && !early;
      await this.#changed();
    }
    return held;
  }

  /** Resolves when a request ends, the run stops, or some time has passed. */
  #changed(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, Math.min(SLEEP_MILLIS_MAX, LOOKAHEAD_MICROS / MICROS_PER_MILLI / 4));
      this.#wake = done;
      function done(): void {
        clearTimeout(timer);
        resolve();
      }
    });
  }

  #pump(): void {
    while (!this.#stopping) {
      const now = this.now();
      // The timer for it may be late.
      if (now > this.#options.durationSeconds * MICROS_PER_SECOND) {
        this.stop();
        break;
      }
      if (this.#inFlight.size >= this.#options.concurrency) {
        this.#fullUntilMicros = now;
        break;
      }
      const due = this.#schedule.take(now);
      if (due === undefined) break;
      if (due.send) this.#send(due);
      else this.#schedule.finished(due.request, now);
    }
    clearTimeout(this.#timer);
    const next = this.#schedule.nextDue;
    // With all of `concurrency` in flight the next end goes on.
    if (this.#stopping || next === undefined || this.#inFlight.size >= this.#options.concurrency) return;
    this.#timer = setTimeout(() => this.#pump(), Math.max(0, next - this.now()) / MICROS_PER_MILLI);
  }

  #send(due: Due): void {
    const { request } = due;
    const { stream, api, traceModels } = this.#options;
    const target = this.#targets[this.sent % this.#targets.length];
    if (target === undefined) return;
    const model = traceModels && request.model !== "" ? request.model : this.#model;
    const body = requestBody(request, model, this.#prompts, this.#options);
    const closing = this.#closing(request);
    const exchange = new DriveExchange({
      stream,
      now: () => this.now(),
      abortAfterChunks: closing.afterChunks,
      onEnd: (result) => {
        clearTimeout(timer);
        this.#ended(exchange, due, target.url, result);
      },
    });
    const timer =
      closing.afterMillis > 0 ? setTimeout(() => exchange.close(closing.outcome), closing.afterMillis) : undefined;
    this.sent++;
    this.#inFlight.add(exchange);
    if (due.dueMicros <= this.#fullUntilMicros) this.heldByConcurrency++;
    target.post(api === "chat" ? "/v1/chat/completions" : "/v1/completions", this.#headersOf(request), body, exchange);
  }

  #headersOf(request: WorkloadRequest): string[] {
    const { sessionHeader, tenantHeader, sloHeader } = this.#options;
    const headers = [...this.#headers];
    if (sessionHeader !== "" && request.session !== "") headers.push(sessionHeader, request.session);
    if (tenantHeader !== "" && request.tenant !== "") headers.push(tenantHeader, request.tenant);
    if (sloHeader !== "" && request.sloClass !== "") headers.push(sloHeader, request.sloClass);
    return headers;
  }

  /** When the driver itself closes this request: at its time limit, or on purpose at a random point of the answer. */
  #closing({ index, outputTokens }: WorkloadRequest): ClosingPlan {
    const { abortFraction, seed, stream, timeoutSeconds } = this.#options;
    const limit = {
      afterChunks: undefined,
      afterMillis: timeoutSeconds * MILLIS_PER_SECOND,
      outcome: "timeout",
    } as const;
    if (abortFraction === 0) return limit;
    const random = randomFor(seed ^ ABORT_STREAM, index);
    if (random.next() >= abortFraction) return limit;
    const afterChunks = stream ? random.below(outputTokens) : 0;
    if (afterChunks > 0) return { ...limit, afterChunks };
    return { afterChunks: undefined, afterMillis: 1 + random.below(EARLY_ABORT_MILLIS_MAX), outcome: "aborted" };
  }

  /** A server may quote what it refuses, so a recorded text gets no message. */
  #keepMessage({ text }: WorkloadRequest, { outcome, errorMessage }: ExchangeResult): void {
    if (!isFailure(outcome) || errorMessage === "" || text !== undefined || this.failureMessages.has(outcome)) return;
    this.failureMessages.set(outcome, errorMessage.slice(0, MESSAGE_CHARS_MAX));
  }

  #ended(exchange: DriveExchange, due: Due, url: string, result: ExchangeResult): void {
    if (this.#inFlight.size >= this.#options.concurrency) this.#fullUntilMicros = this.now();
    this.#inFlight.delete(exchange);
    this.#keepMessage(due.request, result);
    const { outputTokens: wantedOutputTokens, sequences = 1 } = due.request;
    const sample = { ...result, url, dueMicros: due.dueMicros, wantedOutputTokens, sequences };
    this.samples.add(sample);
    this.#requestLog?.write(due.request, sample);
    this.#schedule.finished(due.request, this.now());
    this.#pump();
    this.#wake?.();
  }
}

const ABORT_STREAM = nameHash("drive-aborts");
