import type { EngineConfig } from "./config.ts";
import { Engine } from "./engine.ts";
import { RankedEngine } from "./ranked-engine.ts";
import type { ServingEngine } from "./serving-engine.ts";
import type { EngineSink } from "./sink.ts";

/** The engine of a configuration. */
export function createEngine(config: EngineConfig, sink: EngineSink): ServingEngine {
  return config.dataParallel === 1 ? new Engine(config, sink) : new RankedEngine(config, () => sink);
}
