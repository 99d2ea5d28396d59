import type { Micros } from "#core/base/units.ts";
import type { Input } from "#core/input/input.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import type { Setting } from "../candidate/candidate.ts";
import { type RecordedRun, RunBook } from "../recorded/recorded-run.ts";
import type { AwaitedRequests } from "./awaited-requests.ts";
import { answerLag, requestPredictions, type RolloutPredictions } from "./request-predictions.ts";

export interface PredictionWindowOptions {
  /** Latest requests that it has in any case, and about what it may take where more are needed. */
  readonly requestsMin: number;
  readonly bytesMax: number;
}

/**
 * The requests that predictions are made from: as far back as answers take before the oldest one that waits, so that it
 * meets in the simulation those that it shared an engine with. However many come in that time, nothing but room cuts it.
 */
export class PredictionWindow {
  readonly #options: PredictionWindowOptions;
  #header: TraceHeader | undefined;
  #book: RunBook;
  #waiting: readonly AwaitedRequests[] = [];
  /** Nearly all answers take less. */
  #lagMicros: Micros = 0;
  #latestAt: Micros = 0;

  constructor(options: PredictionWindowOptions) {
    this.#options = options;
    this.#book = this.#newBook();
  }

  /** Requests that it has. */
  get requests(): number {
    return this.#book.requests;
  }

  /** A trace begins. */
  begin(header: TraceHeader): void {
    this.#header = header;
    this.#book = this.#newBook();
    for (const endpoint of header.endpoints) this.#book.endpoints.set(endpoint.id, endpoint);
  }

  /** `endpoint`: where the input's decision sent its request. */
  take(input: Input, endpoint: string | undefined): void {
    this.#latestAt = input.at;
    this.#book.take(input, endpoint);
  }

  /** What waits now, all of it; each is predicted once. */
  awaits(waiting: readonly AwaitedRequests[]): void {
    this.#waiting = waiting;
    const oldest = Math.min(...waiting.map(({ requests }) => requests[0]?.[1] ?? Infinity));
    this.#book.keepSince(oldest - this.#lagMicros);
  }

  /** What can be predicted of what waits; nothing of fewer requests than that. */
  predictions(requestsMin: number, settingOf: (run: RecordedRun) => Setting): RolloutPredictions[] {
    const header = this.#header;
    if (header === undefined || this.#waiting.length === 0 || this.#book.requests < requestsMin) return [];
    const waiting = this.#waiting;
    this.#waiting = [];
    return requestPredictions(waiting, this.#latestAt, () => {
      const run = this.#book.close(header);
      this.#lagMicros = answerLag(run);
      return { run, setting: settingOf(run) };
    });
  }

  #newBook(): RunBook {
    const { requestsMin, bytesMax } = this.#options;
    return new RunBook(requestsMin, bytesMax);
  }
}
