import { Ewma } from "../endpoint/ewma.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import { type Micros, MICROS_PER_SECOND } from "../base/units.ts";

/** What an endpoint's first tokens took lately is the mean over about so long. */
const LATELY_MICROS = 30 * MICROS_PER_SECOND;
/** An error counts e-fold less after about so many others. */
const KEEP = 0.99;
/** Fewer first tokens show nothing. */
const TRIALS_MIN = 32;
/** Differences far below it are nobody's, so they do not count as errors of a short time. */
const EVEN_MICROS = 5_000;
/** An error below it is as good as none: where all requests are alike, an average of them is hard to beat. */
const NEAR = Math.log(1.2);
/** One stall counts for no more than a forecast that was so many times too short. */
const TIMES_MAX = 8;

/**
 * Whether forecasts of first tokens have been nearer lately, over all endpoints, than the moving average of each endpoint's
 * own, or near enough. An error is |ln(expected / measured)|.
 */
export class ForecastTrial {
  readonly #averages = new Map<EndpointId, Ewma>();
  #trials = 0;
  #ours = 0;
  #theirs = 0;

  /** What the moving average expects there; undefined before its first. */
  average(endpoint: EndpointId): Micros | undefined {
    return this.#averages.get(endpoint)?.value;
  }

  /** A first token, and what the forecast and `average` had expected when its request was sent. */
  add(endpoint: EndpointId, at: Micros, measured: Micros, forecast: Micros, average: Micros | undefined): void {
    let known = this.#averages.get(endpoint);
    if (known === undefined) this.#averages.set(endpoint, (known = new Ewma(LATELY_MICROS)));
    known.add(at, measured);
    if (average === undefined) return;
    this.#trials++;
    const weight = Math.max(1 - KEEP, 1 / this.#trials);
    this.#ours += weight * (errorOf(forecast, measured) - this.#ours);
    this.#theirs += weight * (errorOf(average, measured) - this.#theirs);
  }

  forget(endpoint: EndpointId): void {
    this.#averages.delete(endpoint);
  }

  /** Undefined before enough of them. */
  get isNearer(): boolean | undefined {
    return this.#trials < TRIALS_MIN ? undefined : this.#ours <= Math.max(NEAR, this.#theirs);
  }
}

function errorOf(expected: Micros, measured: Micros): number {
  const times = (expected + EVEN_MICROS) / (measured + EVEN_MICROS);
  return Math.min(Math.log(TIMES_MAX), Math.abs(Math.log(times)));
}
