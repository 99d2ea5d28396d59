import type { Micros } from "#core/base/units.ts";
import type { EngineRequest, SubmitOutcome } from "./request.ts";
import type { EngineGauges } from "./sink.ts";

/** What serves behind one endpoint: an engine, or several ranks of one. Engine describes each member. */
export interface ServingEngine {
  submit(at: Micros, request: EngineRequest): SubmitOutcome;
  abort(at: Micros, id: string): boolean;
  nextEventAt(): Micros | undefined;
  advanceTo(at: Micros): void;
  reportSettled(): void;
  gauges(): EngineGauges;
  /** Leading blocks of a chain in the cache; of several ranks, in that which holds most of it. */
  cachedPrefixBlocks(hashes: Int32Array): number;
  outputTokens(id: string): number | undefined;
  /** Empties the cache; false, and nothing is done, while requests hold blocks of it. */
  resetPrefixCache(): boolean;
}
