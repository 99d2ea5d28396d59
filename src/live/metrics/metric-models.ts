import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import { LabelSlots } from "./metric-labels.ts";

/**
 * Slots for models. Clients can name anything, so a name has series of its own only when some endpoint lists it, or,
 * where an endpoint lists nothing and serves any, once a request for it went well.
 */
export class ModelLabels {
  readonly slots: LabelSlots;
  readonly #models = new Map<EndpointId, readonly string[]>();

  constructor(max: number) {
    this.slots = new LabelSlots(max);
  }

  observe(input: Input): void {
    if (input.kind === "endpoint-joined" || input.kind === "endpoint-changed") this.#learn(input.endpoint);
    else if (input.kind === "endpoint-left") this.#models.delete(input.endpoint);
  }

  slot(model: string, wentWell: boolean): number {
    return this.slots.known(model) ?? (this.#isServed(model, wentWell) ? this.slots.slot(model) : this.slots.other());
  }

  #learn({ id, models }: Endpoint): void {
    this.#models.set(id, models);
  }

  #isServed(model: string, wentWell: boolean): boolean {
    for (const models of this.#models.values()) {
      if (models.length === 0 ? wentWell : models.includes(model)) return true;
    }
    return false;
  }
}
