import type { BatchShape } from "#engine/step-time/batch-shape.ts";
import { PARAMETERS, parametersOf } from "./parameters.ts";

const WIDTH = PARAMETERS.length;
const PLACES = parametersOf((name) => PARAMETERS.indexOf(name));

/**
 * What one engine has done since it began, as multiples of the parameters, so that a time between two moments of it is
 * the difference of two rows times the parameters (while it is busy).
 */
export class WorkLog {
  /** Times a base was spent, prefill tokens, decodes, and so on, up to the end of the last step. */
  readonly #done = new Float64Array(WIDTH);
  /** The same of the step that ends; no delay is ever a part of one. */
  readonly #step = new Float64Array(WIDTH);
  /** Rows that become visible later, by time: their number in the evidence, and when. */
  readonly #rows: number[] = [];
  readonly #visibleAt: number[] = [];
  #first = 0;
  /** The log at the time when a request became visible, and at its first and last token; a row of WIDTH per request. */
  readonly #arrived: Float64Array;
  readonly #times: WorkTimes;

  constructor(times: WorkTimes, arrived: Float64Array) {
    this.#times = times;
    this.#arrived = arrived;
  }

  expect(row: number, visibleAt: number): void {
    this.#rows.push(row);
    this.#visibleAt.push(visibleAt);
  }

  step(startAt: number, endAt: number, shape: Readonly<BatchShape>): void {
    const step = this.#step;
    step[PLACES.baseMicros] = 1;
    step[PLACES.perPrefillTokenMicros] = shape.prefillTokens;
    step[PLACES.perDecodeMicros] = shape.decodeSequences;
    step[PLACES.perPrefillMicros] = shape.prefillSequences;
    step[PLACES.perDecodeContextTokenMicros] = shape.decodeContextTokens;
    step[PLACES.perPrefillPairMicros] = shape.prefillPairsTwice / 2;
    for (; this.#first < this.#rows.length && this.#visibleAt[this.#first]! < endAt; this.#first++) {
      const part = Math.max(0, (this.#visibleAt[this.#first]! - startAt) / (endAt - startAt));
      const at = this.#rows[this.#first]! * WIDTH;
      for (let j = 0; j < WIDTH; j++) this.#arrived[at + j] = this.#done[j]! + part * step[j]!;
    }
    for (let j = 0; j < WIDTH; j++) this.#done[j]! += step[j]!;
  }

  firstToken(row: number): void {
    this.#difference(row, this.#times.ttft, this.#arrived);
  }

  lastToken(row: number): void {
    this.#difference(row, this.#times.e2e, this.#arrived);
  }

  #difference(row: number, into: Float64Array, since: Float64Array): void {
    for (let j = 0; j < WIDTH; j++) into[row * WIDTH + j] = this.#done[j]! - since[row * WIDTH + j]!;
    // The delay is spent once, before the engine sees the request.
    into[row * WIDTH] = 1;
  }
}

/** How often each parameter is in a request's time to its first token and to its last; a row of PARAMETERS each. */
export interface WorkTimes {
  readonly ttft: Float64Array;
  readonly e2e: Float64Array;
}
