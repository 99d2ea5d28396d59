import type { KvCache } from "./kv-cache.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Settlement } from "./settlement.ts";
import type { EngineGauges } from "./sink.ts";

type LoadGauges = Pick<EngineGauges, "running" | "waiting" | "kvUtilization">;

/** Who is there, and how much of the cache they hold. */
export function loadOf({ running, waiting, kvUtilization }: LoadGauges): LoadGauges {
  return { running, waiting, kvUtilization };
}

type CacheGauges = Pick<
  EngineGauges,
  | "kvBlocksUsed"
  | "kvBlocksFree"
  | "blockHits"
  | "blockMisses"
  | "tierBlocks"
  | "tierBlocksCopiedOut"
  | "tierBlocksCopiedBack"
  | "tierBlocksThrashed"
>;

/** What is in an engine's cache, and what was done with it. */
export function cacheGauges({ used, free, blockHits, blockMisses, tier }: KvCache): CacheGauges {
  return {
    kvBlocksUsed: used,
    kvBlocksFree: free,
    blockHits,
    blockMisses,
    tierBlocks: tier?.size ?? 0,
    tierBlocksCopiedOut: tier?.copiedOut ?? 0,
    tierBlocksCopiedBack: tier?.copiedBack ?? 0,
    tierBlocksThrashed: tier?.thrashed ?? 0,
  };
}

type Counters = Pick<
  EngineGauges,
  | "prefixQueriesTokens"
  | "prefixHitsTokens"
  | "tierHitsTokens"
  | "promptTokens"
  | "generationTokens"
  | "preemptions"
  | "preemptionsReported"
  | "finished"
>;

/** What an engine has done; `coalesced` tokens of the run under way are not written down yet. */
export function countersOf(
  { prefixQueriesTokens, prefixHitsTokens, tierHitsTokens, preemptions }: Scheduler,
  { promptTokens, generationTokens, preemptionsReported, finished }: Settlement,
  coalesced: number,
): Counters {
  return {
    prefixQueriesTokens,
    prefixHitsTokens,
    tierHitsTokens,
    promptTokens,
    generationTokens: generationTokens + coalesced,
    preemptions,
    preemptionsReported,
    finished,
  };
}
