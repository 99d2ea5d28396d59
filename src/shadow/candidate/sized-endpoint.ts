import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { EngineConfig } from "#engine/config.ts";

/** The endpoint with the room of its engine, as its page would show it. */
export function sizedEndpoint(endpoint: Endpoint, engine: EngineConfig): Endpoint {
  const { dataParallel, kvBlocks, blockTokens, sequencesMax } = engine;
  const kvCapacityTokens = dataParallel * (kvBlocks - 1) * blockTokens;
  return { ...endpoint, kvCapacityTokens, concurrencyMax: dataParallel * sequencesMax };
}
