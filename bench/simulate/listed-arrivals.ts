import { assert } from "#core/base/assert.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Micros } from "#core/base/units.ts";
import type { ArrivalSource, SimulatedRequest } from "#sim/setting/arrival-source.ts";

/** One arrival as a trace or a test lists it. */
export interface ListedArrival {
  readonly route: RouteRequest;
  readonly arrivalAt: Micros;
  readonly outputTokens: number;
  /** Infinity for never. */
  readonly deadlineAt: Micros;
  /** Blocks of prompt and answer at the engines' block size; the router's own chain where it is left out. */
  readonly hashes?: Int32Array;
}

/** Arrivals at times that nothing changes, in order of time. */
export class ListedArrivals implements ArrivalSource {
  readonly stranded = 0;
  readonly #arrivals: Iterator<ListedArrival>;
  #next: ListedArrival | undefined;

  constructor(arrivals: Iterable<ListedArrival>) {
    this.#arrivals = arrivals[Symbol.iterator]();
    this.#next = this.#pull();
  }

  nextAt(): Micros {
    return this.#next?.arrivalAt ?? Infinity;
  }

  take(): SimulatedRequest {
    const next = this.#next;
    assert(next !== undefined, "an arrival is taken where there is one");
    this.#next = this.#pull();
    assert(this.nextAt() >= next.arrivalAt, "listed arrivals are in order of time");
    const { route, arrivalAt, outputTokens, deadlineAt, hashes = route.blocks.hashes } = next;
    return { route, arrivalAt, outputTokens, deadlineAt, engineHashes: () => hashes };
  }

  /** Open loop: nothing follows. */
  ended(): void {}

  #pull(): ListedArrival | undefined {
    const step = this.#arrivals.next();
    return step.done === true ? undefined : step.value;
  }
}
