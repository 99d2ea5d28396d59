import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineFleet } from "./fleet/engine-fleet.ts";
import type { Flight } from "./path/flight.ts";
import type { SimulationEvent } from "./path/simulation-event.ts";

/** The simulation as reports of progress see it. */
export interface ProgressHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  later(at: Micros, event: SimulationEvent): void;
  accept(input: Input): void;
}

/** The router gets to know how many tokens a request has after each `everyMicros`; never where there are none. */
export function progressLater(host: ProgressHost, everyMicros: Micros | undefined, flight: Flight): void {
  if (everyMicros === undefined || everyMicros === Infinity) return;
  host.later(host.clock + everyMicros, { kind: "progress", flight, engine: flight.engine });
}

/** It is time to. */
export function progress(host: ProgressHost, everyMicros: Micros | undefined, flight: Flight): void {
  const tokens = flight.closed ? undefined : host.fleet.outputTokens(host.clock, flight);
  if (tokens === undefined) return;
  const outputTokens = tokens * flight.sequences;
  host.accept({ kind: "progress", at: host.clock, requestId: flight.id, outputTokens });
  progressLater(host, everyMicros, flight);
}
