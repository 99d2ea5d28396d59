import type { KvCache } from "./kv-cache.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Settlement } from "./settlement.ts";
import type { EngineGauges } from "./sink.ts";

type LoadGauges = Pick<EngineGauges, "running" | "waiting" | "kvUtilization">;

/**
 * What an engine shows of itself. `steps` were started; `coalesced` tokens of the run under way are not written down yet.
 * One literal: a scrape takes it, and an object put together of parts costs several times as much.
 */
export function gaugesOf(
  { running, waiting, kvUtilization }: LoadGauges,
  kv: KvCache,
  scheduler: Scheduler,
  settlement: Settlement,
  steps: number,
  coalesced: number,
): EngineGauges {
  const { tier } = kv;
  return {
    running,
    waiting,
    kvUtilization,
    kvBlocksUsed: kv.used,
    kvBlocksFree: kv.free,
    blockHits: kv.blockHits,
    blockMisses: kv.blockMisses,
    tierBlocks: tier === undefined ? 0 : tier.size,
    tierBlocksCopiedOut: tier === undefined ? 0 : tier.copiedOut,
    tierBlocksCopiedBack: tier === undefined ? 0 : tier.copiedBack,
    tierBlocksThrashed: tier === undefined ? 0 : tier.thrashed,
    prefixQueriesTokens: scheduler.prefixQueriesTokens,
    prefixHitsTokens: scheduler.prefixHitsTokens,
    tierHitsTokens: scheduler.tierHitsTokens,
    promptTokens: settlement.promptTokens,
    generationTokens: settlement.generationTokens + coalesced,
    preemptions: scheduler.preemptions,
    preemptionsReported: settlement.preemptionsReported,
    finished: settlement.finished,
    steps,
  };
}
