import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { RateShape } from "./rate-shape.ts";
import type { WorkloadRequest } from "../workload-request.ts";
import type { RateCurve } from "./rate-curve.ts";
import { taggedRequest } from "./tagged-request.ts";

export interface ShapeOptions {
  readonly curve: RateCurve;
  /** Of first turns, over the whole curve; the workload's own where it is left out. */
  readonly requestsPerSecond?: number | undefined;
  /** Equal block ids of different rounds are equal content. If not they are kept apart. */
  readonly sharedContent: boolean;
}

/**
 * The workload again and again until the curve is over, its clock as fast as the curve: gaps between arrivals are divided
 * by the rate of the moment, so that what is bursty stays so. Think times, lengths and content stay as they are.
 *
 * `read` gives the workload anew for each round. Throws RangeError for one that has no time between its arrivals.
 */
export async function* shapeWorkload(
  read: () => Promise<AsyncIterable<WorkloadRequest>>,
  { curve, requestsPerSecond, sharedContent }: ShapeOptions,
): AsyncGenerator<WorkloadRequest> {
  const { span, count } = await extentOf(await read());
  if (span === 0) throw new RangeError("expected a workload whose requests arrive at different times");
  // A round ends a mean gap behind its last arrival, so that rounds put together have the rate of one.
  const roundMicros = (span * count) / (count - 1);
  const own = (count * MICROS_PER_SECOND) / roundMicros;
  const speed = (requestsPerSecond ?? own) / own;
  const clock = new ShapedClock(curve);
  let index = 0;
  for (let round = 0; clock.at((round * roundMicros) / speed) < Infinity; round++) {
    const left = new Set<string>();
    for await (const request of await read()) {
      const { session, parent, arrivalMicros } = request;
      const comes = comesByItself(request) ? clock.at((round * roundMicros + arrivalMicros) / speed) : 0;
      const follows = parent !== undefined && left.has(parent.session);
      if (comes === Infinity || follows || left.has(session)) {
        if (session !== "") left.add(session);
        continue;
      }
      yield { ...taggedRequest(request, round, index++, sharedContent), arrivalMicros: Math.round(comes) };
    }
  }
}

/** Turns one clock into the other, in any order, in a row fast. */
class ShapedClock {
  readonly #shape: RateShape;
  readonly #until: number;
  #real = 0;
  #even = 0;

  constructor({ windows, seconds }: RateCurve) {
    this.#shape = new RateShape(windows, undefined, undefined);
    this.#until = seconds * MICROS_PER_SECOND;
  }

  /** When the shaped clock is there, in microseconds; Infinity behind the curve's end. */
  at(even: number): number {
    if (even < this.#even) [this.#real, this.#even] = [0, 0];
    const real = this.#shape.after(this.#real, even - this.#even);
    if (!(real < this.#until)) return Infinity;
    [this.#real, this.#even] = [real, even];
    return real;
  }
}

/** Other turns come when those that they follow are over. */
function comesByItself({ thinkMicros }: WorkloadRequest): boolean {
  return thinkMicros === undefined;
}

async function extentOf(requests: AsyncIterable<WorkloadRequest>): Promise<{ span: number; count: number }> {
  let first = Infinity;
  let last = -Infinity;
  let count = 0;
  for await (const request of requests) {
    if (!comesByItself(request)) continue;
    first = Math.min(first, request.arrivalMicros);
    last = Math.max(last, request.arrivalMicros);
    count++;
  }
  return { span: count < 2 ? 0 : last - first, count };
}
