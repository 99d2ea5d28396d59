import type { Snapshot } from "../endpoint/snapshot.ts";
import { waitingRequests } from "../endpoint/gauge.ts";
import type { RouteRequest } from "../request/request.ts";
import { MICROS_PER_MILLI } from "../base/units.ts";
import { ABSTAIN, scorerPlugin } from "./scorer.ts";

/**
 * Packs requests onto the endpoint that meets the targets most tightly (`least`) or most loosely (`most`), by this
 * router's own moving averages of TTFT and TPOT there.
 *
 *     headroom = target - observed, for each of TTFT and TPOT
 *     h'       = |headroom| scaled between the endpoints of the set; a dimension without range has no weight
 *     combined = ttftWeight * h'_ttft + tpotWeight * h'_tpot, weights normalised
 *     score    = 1 - combined (least) or combined (most); 0 outside the set
 *
 * The set is the endpoints with both headrooms at or above 0; where there is none, the idle ones, else those that miss
 * TPOT only, those that miss TTFT only, and all, whichever is first to have any. There both strategies prefer the
 * smallest miss. Endpoints without an observation are abstained from. While no candidate has one,
 *
 *     score = ((1 - kv utilization) + (most waiting - waiting) / most waiting + share of the prompt held) / 3
 */
export const latencyHeadroom = scorerPlugin({
  summary: "distance to the TTFT and TPOT targets by this router's own observations",
  reads: ["observed-latency", "ledger", "scrape:load", "scrape:kv", "prefix-index"],
  source: "llm-d latency-scorer, with observed instead of predicted latency",
  parameters: {
    ttftTargetMillis: { type: "number", default: 500, min: 0.001, meaning: "target time to first token" },
    tpotTargetMillis: { type: "number", default: 50, min: 0.001, meaning: "target time per output token" },
    ttftWeight: { type: "number", default: 0.8, min: 0, meaning: "weight of TTFT headroom" },
    tpotWeight: { type: "number", default: 0.2, min: 0, meaning: "weight of TPOT headroom" },
    strategy: {
      type: "choice",
      default: "least",
      values: ["least", "most"],
      meaning: "which headroom among those that meet the targets",
    },
  },
  create: (name, { ttftTargetMillis, tpotTargetMillis, ttftWeight, tpotWeight, strategy }) => ({
    name,
    score(request, candidates, scores) {
      if (!candidates.some(known)) return scoreUnobserved(request, candidates, scores);
      const ttft = candidates.map((candidate) => headroom(ttftTargetMillis, candidate.ttftMicros));
      const tpot = candidates.map((candidate) => headroom(tpotTargetMillis, candidate.tpotMicros));
      const set = bestTier(candidates, ttft, tpot);
      const meets = set.some((i) => ttft[i]! >= 0 && tpot[i]! >= 0);
      const combined = combine(set, [ttft, tpot], [ttftWeight, tpotWeight]);
      for (let i = 0; i < candidates.length; i++) scores[i] = known(candidates[i]!) ? 0 : ABSTAIN;
      set.forEach((i, at) => (scores[i] = meets && strategy === "most" ? combined[at]! : 1 - combined[at]!));
    },
  }),
});

const known = ({ ttftMicros, tpotMicros }: Snapshot) => ttftMicros !== undefined && tpotMicros !== undefined;

/** The queue term is 1 for all while nobody waits. */
function scoreUnobserved({ blocks }: RouteRequest, candidates: readonly Snapshot[], scores: Float64Array): void {
  const waiting = candidates.map(waitingRequests);
  const most = Math.max(...waiting);
  candidates.forEach(({ kvUtilization, hitBlocks }, i) => {
    const queue = most === 0 ? 1 : (most - waiting[i]!) / most;
    const held = blocks.length === 0 ? 0 : Math.min(1, hitBlocks / blocks.length);
    scores[i] = (1 - kvUtilization + queue + held) / 3;
  });
}

/** NaN where nothing was observed. */
const headroom = (targetMillis: number, observed: number | undefined) =>
  targetMillis * MICROS_PER_MILLI - (observed ?? NaN);

function bestTier(candidates: readonly Snapshot[], ttft: readonly number[], tpot: readonly number[]): number[] {
  const observed = ttft.map((_, i) => i).filter((i) => !Number.isNaN(ttft[i]!) && !Number.isNaN(tpot[i]!));
  const misses = (i: number) => (ttft[i]! < 0 ? 2 : 0) + (tpot[i]! < 0 ? 1 : 0);
  const least = Math.min(...observed.map(misses));
  const idle = least === 0 ? [] : observed.filter((i) => candidates[i]!.requestsInFlight === 0);
  return idle.length > 0 ? idle : observed.filter((i) => misses(i) === least);
}

/** Weighted sum of the absolute headrooms, each scaled to [0, 1] over the set; 0.5 where no dimension has a range. */
function combine(
  set: readonly number[],
  headrooms: readonly (readonly number[])[],
  weights: readonly number[],
): number[] {
  const spans = headrooms.map((values) => {
    const sizes = set.map((i) => Math.abs(values[i]!));
    return { min: Math.min(...sizes), max: Math.max(...sizes) };
  });
  const used = spans.map(({ min, max }, d) => (max - min > 1e-9 ? weights[d]! : 0));
  const sum = used.reduce((a, b) => a + b, 0);
  return set.map((i) => {
    if (sum === 0) return 0.5;
    return spans.reduce((total, { min, max }, d) => {
      return used[d] === 0 ? total : total + (used[d]! / sum) * ((Math.abs(headrooms[d]![i]!) - min) / (max - min));
    }, 0);
  });
}
