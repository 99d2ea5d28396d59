import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineSink } from "#engine/sink.ts";
import type { EngineClock } from "./engine-clock.ts";

/** Who is notified of what engines store and overwrite. */
export interface CacheFollower {
  sinkOf(engine: number, config: EngineConfig, clock: EngineClock): Partial<EngineSink>;
  /** The endpoint of that engine is in the router. */
  joined?(at: Micros, engine: number): void;
}
