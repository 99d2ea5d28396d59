import type { Micros } from "#core/base/units.ts";
import type { EngineRequest, FinishReason } from "./request.ts";
import type { EngineSink } from "./sink.ts";

interface Delayed {
  readonly at: Micros;
  readonly request: EngineRequest;
  readonly outputTokens: number;
  /** Undefined for a token. */
  readonly reason: FinishReason | undefined;
  readonly cachedTokens: number;
}

/**
 * Outcomes on their way to the sink. They go straight through, except where requests complete before their last step
 * has run: then they wait here until it has, in the order of time.
 */
export class Outbox {
  readonly #sink: EngineSink;
  readonly #delayed: Delayed[] = [];

  constructor(sink: EngineSink) {
    this.#sink = sink;
  }

  nextAt(): Micros {
    return this.#delayed[0]?.at ?? Infinity;
  }

  token(now: Micros, at: Micros, request: EngineRequest, outputTokens: number): void {
    if (at === now) this.#sink.token(at, request, outputTokens);
    else this.#delay({ at, request, outputTokens, reason: undefined, cachedTokens: 0 });
  }

  finished(now: Micros, at: Micros, request: EngineRequest, reason: FinishReason, cachedTokens: number): void {
    if (at === now) this.#sink.finished(at, request, reason, cachedTokens);
    else this.#delay({ at, request, outputTokens: 0, reason, cachedTokens });
  }

  /** Reports at once the tokens that the request was promised, with their times: it is about to go. */
  hurry(request: EngineRequest): void {
    for (let i = 0; i < this.#delayed.length;) {
      const outcome = this.#delayed[i];
      if (outcome?.request !== request) i++;
      else {
        this.#delayed.splice(i, 1);
        this.#sink.token(outcome.at, outcome.request, outcome.outputTokens);
      }
    }
  }

  /** Reports what is due. */
  flush(now: Micros): void {
    for (let first = this.#delayed[0]; first !== undefined && first.at <= now; first = this.#delayed[0]) {
      this.#delayed.shift();
      if (first.reason === undefined) this.#sink.token(first.at, first.request, first.outputTokens);
      else this.#sink.finished(first.at, first.request, first.reason, first.cachedTokens);
    }
  }

  #delay(outcome: Delayed): void {
    let i = this.#delayed.length;
    while (i > 0 && (this.#delayed[i - 1]?.at ?? 0) > outcome.at) i--;
    this.#delayed.splice(i, 0, outcome);
  }
}
