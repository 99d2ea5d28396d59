import type { EngineConfig } from "./config.ts";
import { Engine } from "./engine.ts";
import type { EngineMemory } from "./engine-memory.ts";
import { RankedEngine } from "./ranked-engine.ts";
import type { ServingEngine } from "./serving-engine.ts";
import type { EngineSink } from "./sink.ts";

/** The engine of a configuration; `memory` is of use to a single one. */
export function createEngine(config: EngineConfig, sink: EngineSink, memory?: EngineMemory): ServingEngine {
  return config.dataParallel === 1 ? new Engine(config, sink, memory) : new RankedEngine(config, () => sink);
}
