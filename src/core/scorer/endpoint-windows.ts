import type { EndpointId } from "../endpoint/endpoint.ts";
import { MICROS_PER_SECOND, type Micros } from "../units.ts";
import { WindowSum } from "./window-sum.ts";

/** A WindowSum for each endpoint. An endpoint that left is to be forgotten. */
export class EndpointWindows {
  readonly #windowMicros: Micros;
  readonly #windows = new Map<EndpointId, WindowSum>();

  constructor(windowSeconds: number) {
    this.#windowMicros = windowSeconds * MICROS_PER_SECOND;
  }

  /** 0 for an endpoint that was given nothing. */
  sum(endpoint: EndpointId, at: Micros): number {
    return this.#windows.get(endpoint)?.sum(at) ?? 0;
  }

  add(endpoint: EndpointId, at: Micros, sample: number): void {
    let window = this.#windows.get(endpoint);
    if (window === undefined) this.#windows.set(endpoint, (window = new WindowSum(this.#windowMicros)));
    window.add(at, sample);
  }

  forget(endpoint: EndpointId): void {
    this.#windows.delete(endpoint);
  }
}
