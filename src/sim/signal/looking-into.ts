import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { SimulationOptions } from "../setting/simulation-options.ts";
import type { CacheCopies } from "./cache-copies.ts";

/** The same options, whose routers can look into the engines' caches, beside what they believe of them. */
export function lookingInto(options: SimulationOptions, caches: CacheCopies, fleet: EngineFleet): SimulationOptions {
  const engineCache: NonNullable<SimulationOptions["router"]["engineCache"]> = (at, endpoint, blocks) =>
    caches.held(at, fleet.numberOf(endpoint), blocks);
  return { ...options, router: { ...options.router, engineCache } };
}
