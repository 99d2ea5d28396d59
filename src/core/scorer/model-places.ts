import type { Endpoint, EndpointId } from "../endpoint/endpoint.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { LatencyModel, Speeds } from "../latency/latency-model.ts";
import type { FoundThere, LatencyForecaster } from "./latency-forecaster.ts";
import type { WindowSum } from "./window-sum.ts";

/** What was found of a candidate, for as long as it is the same and the forecaster has the same `changes`. */
export interface ModelPlace extends FoundThere {
  readonly id: EndpointId;
  readonly endpoint: Endpoint;
  readonly changes: number;
  readonly model: LatencyModel;
  /** Undefined before its first answer. */
  speeds: Speeds | undefined;
  computed: WindowSum | undefined;
}

/**
 * What is known of each candidate, kept by place: candidates stand at the same place decision after decision, and each
 * look-up by id takes 100 candidates 2 to 5 us.
 */
export class ModelPlaces {
  readonly #forecaster: LatencyForecaster;
  readonly #places: (ModelPlace | undefined)[] = [];

  constructor(forecaster: LatencyForecaster) {
    this.#forecaster = forecaster;
  }

  at(place: number, candidate: Snapshot): ModelPlace {
    const { id, endpoint } = candidate;
    let known = this.#places[place];
    if (known?.endpoint !== endpoint || known.id !== id || known.changes !== this.#forecaster.changes) {
      const model = this.#forecaster.modelOf(candidate);
      const aboard = this.#forecaster.aboardPlaceOf(id);
      const { changes } = this.#forecaster;
      known = { id, endpoint, changes, model, aboard, speeds: undefined, computed: undefined };
      this.#places[place] = known;
    }
    known.speeds ??= known.model.speedsOf(id);
    known.computed ??= this.#forecaster.computedOf(id);
    return known;
  }
}
