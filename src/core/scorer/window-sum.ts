import { type Micros, MICROS_PER_SECOND } from "../base/units.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";

/** Samples kept; beyond that the oldest goes, so that a fast source shortens the window instead of growing it. */
const SAMPLES_MAX = 16_384;
const ROOM_MIN = 16;

/**
 * Sum and number of the samples of the last `windowMicros`. Samples are integers, so that the sum is exact however often
 * it was asked for. Time does not go back.
 *
 * A ring, for each endpoint's takes a sample of every request: arrays that were cut now and then took 90 bytes of the heap
 * each time, and 0.4 us.
 */
export class WindowSum {
  readonly #windowMicros: Micros;
  #at: Float64Array = new Float64Array(ROOM_MIN);
  #samples: Float64Array = new Float64Array(ROOM_MIN);
  #first = 0;
  #count = 0;
  /**
   * The sum, and when the oldest sample was taken: Infinity without any. All that most who ask need, in one place: a
   * decision asks two windows of each endpoint. In an array: a field turns from integer to double at the first drop, and V8
   * may then optimize who reads it in vain, over and over, for 2.5 s of a simulation of 3.
   */
  readonly #state = new Float64Array([0, Infinity]);

  constructor(windowMicros: Micros) {
    this.#windowMicros = windowMicros;
  }

  sum(at: Micros): number {
    this.#forget(at);
    return this.#state[0]!;
  }

  count(at: Micros): number {
    this.#forget(at);
    return this.#count;
  }

  add(at: Micros, sample: number): void {
    this.#forget(at);
    if (this.#count === SAMPLES_MAX) this.#drop();
    if (this.#count === this.#at.length) this.#grow();
    const place = (this.#first + this.#count) & (this.#at.length - 1);
    this.#at[place] = at;
    this.#samples[place] = sample;
    if (this.#count++ === 0) this.#state[1] = at;
    this.#state[0]! += sample;
  }

  #forget(at: Micros): void {
    while (at - this.#state[1]! > this.#windowMicros) this.#drop();
  }

  #drop(): void {
    this.#state[0]! -= this.#samples[this.#first]!;
    this.#first = (this.#first + 1) & (this.#at.length - 1);
    this.#count--;
    this.#state[1] = this.#count === 0 ? Infinity : this.#at[this.#first]!;
  }

  #grow(): void {
    this.#at = unrolled(this.#at, this.#first);
    this.#samples = unrolled(this.#samples, this.#first);
    this.#first = 0;
  }
}

/** Twice the room, with what was first at the beginning. */
function unrolled(ring: Float64Array, first: number): Float64Array {
  const wider = new Float64Array(2 * ring.length);
  wider.set(ring.subarray(first));
  wider.set(ring.subarray(0, first), ring.length - first);
  return wider;
}

/** Samples that stand for what a new endpoint was never given. */
const PARTS = 12;

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

  /** The same object until the endpoint is forgotten; undefined before its first sample. */
  windowOf(endpoint: EndpointId): WindowSum | undefined {
    return this.#windows.get(endpoint);
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

  /** An endpoint that is new counts as if it had been given what the others were on average, evenly over the window. */
  begin(endpoint: EndpointId, at: Micros): void {
    this.forget(endpoint);
    let all = 0;
    for (const window of this.#windows.values()) all += window.sum(at);
    const part = Math.round(all / Math.max(1, this.#windows.size) / PARTS);
    if (part === 0) return;
    for (let i = PARTS - 1; i >= 0; i--) this.add(endpoint, at - (i * this.#windowMicros) / PARTS, part);
  }

  forget(endpoint: EndpointId): void {
    this.#windows.delete(endpoint);
    this.#places = [];
  }
}
