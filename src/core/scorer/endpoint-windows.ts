import type { EndpointId } from "../endpoint/endpoint.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import { MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import { WindowSum } from "./window-sum.ts";

interface Place {
  readonly id: EndpointId;
  readonly window: WindowSum;
}

/** A WindowSum for each endpoint. An endpoint that left is to be forgotten. */
export class EndpointWindows {
  readonly #windowMicros: Micros;
  readonly #windows = new Map<EndpointId, WindowSum>();
  /** By place among the candidates, where each stands decision after decision: found without a look-up by id. */
  #places: (Place | undefined)[] = [];

  constructor(windowSeconds: number) {
    this.#windowMicros = windowSeconds * MICROS_PER_SECOND;
  }

  /** 0 for an endpoint that was given nothing. */
  sum(endpoint: EndpointId, at: Micros): number {
    return this.#windows.get(endpoint)?.sum(at) ?? 0;
  }

  /** Writes the sum of each candidate at its own time, and returns all of them together. */
  sums(candidates: readonly Pick<Snapshot, "id" | "at">[], sums: Float64Array): number {
    let all = 0;
    for (let i = 0; i < candidates.length; i++) {
      const { id, at } = candidates[i]!;
      let place = this.#places[i];
      if (place?.id !== id) {
        const window = this.#windows.get(id);
        place = window && { id, window };
        this.#places[i] = place;
      }
      all += sums[i] = place === undefined ? 0 : place.window.sum(at);
    }
    return all;
  }

  add(endpoint: EndpointId, at: Micros, sample: number): void {
    let window = this.#windows.get(endpoint);
    if (window === undefined) this.#windows.set(endpoint, (window = new WindowSum(this.#windowMicros)));
    window.add(at, sample);
  }

  forget(endpoint: EndpointId): void {
    this.#windows.delete(endpoint);
    this.#places = [];
  }
}
