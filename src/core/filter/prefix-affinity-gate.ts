import type { Snapshot } from "../endpoint/snapshot.ts";
import { MILLIS_PER_SECOND } from "../base/units.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Sticks to endpoints that hold nearly all of the prompt until their prefill backlog makes a miss the faster way.
 *
 *     sticky = endpoints with leading blocks held / blocks >= affinityThreshold
 *     ttft_i = queued prefill tokens / peakPrefillTokensPerSecond
 *     keep sticky unless min(ttft of sticky) - min(ttft of the rest) > maxTtftPenaltyMillis
 */
export const prefixAffinityGate = filterPlugin({
  summary: "keeps the endpoints that hold nearly all of the prompt while waiting there is worth it",
  reads: ["prefix-index", "ledger"],
  source: "llm-d prefix-cache-affinity-filter",
  parameters: {
    affinityThreshold: {
      type: "number",
      default: 0.8,
      min: 0,
      max: 1,
      meaning: "share held that makes an endpoint sticky; 0 switches the gate off",
    },
    explorationProbability: { type: "number", default: 0, min: 0, max: 1, meaning: "chance to keep all" },
    maxTtftPenaltyMillis: {
      type: "number",
      default: 18_000,
      min: 0,
      meaning: "wait that a hit may cost; 0 always sticks",
    },
    peakPrefillTokensPerSecond: {
      type: "number",
      default: 15_928,
      min: 1,
      meaning: "prefill speed of one endpoint, measured",
    },
  },
  create: (name, { affinityThreshold, explorationProbability, maxTtftPenaltyMillis, peakPrefillTokensPerSecond }) => ({
    name,
    filter({ blocks }, candidates, keep, random) {
      if (candidates.length <= 1 || affinityThreshold <= 0) return;
      if (explorationProbability > 0 && random.next() < explorationProbability) return;
      const sticky = candidates.map(
        ({ hitBlocks }) => blocks.length > 0 && hitBlocks / blocks.length >= affinityThreshold,
      );
      if (!sticky.includes(true) || !sticky.includes(false)) return;
      const backlog = (stuck: boolean) => leastPrefill(candidates.filter((_, i) => sticky[i] === stuck));
      const penaltyMillis = ((backlog(true) - backlog(false)) / peakPrefillTokensPerSecond) * MILLIS_PER_SECOND;
      if (maxTtftPenaltyMillis > 0 && penaltyMillis > maxTtftPenaltyMillis) return;
      sticky.forEach((stays, i) => (keep[i] = stays ? 1 : 0));
    },
  }),
});

function leastPrefill(candidates: readonly Snapshot[]): number {
  return Math.min(...candidates.map(({ prefillTokensQueued }) => prefillTokensQueued));
}
