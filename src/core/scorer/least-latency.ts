import type { Snapshot } from "../endpoint/snapshot.ts";
import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint where a typical answer would be over first.
 *
 *     cost = TTFT + outputTokensGuess * TPOT
 *
 * by the last scrape's means, else by this router's own. Scaled between the candidates; one that is unknown is abstained
 * from, and so is one that is idle but for what this router remembers. (AIBrix adds queue, prefill and decode time of the
 * requests that finished; TTFT is the first two together, and known sooner.)
 */
export const leastLatency = scorerPlugin({
  summary: "expected end-to-end latency there, scaled between the candidates",
  reads: ["scrape:latency", "observed-latency", "ledger"],
  source: "AIBrix least-latency",
  parameters: {
    outputTokensGuess: { type: "number", default: 100, min: 1, meaning: "tokens of a typical answer" },
  },
  create: (name, { outputTokensGuess }) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = latency(candidates[i]!, outputTokensGuess);
      lowerIsBetter(scores, candidates.length);
    },
  }),
});

/** NaN while unknown. */
function latency(snapshot: Snapshot, outputTokens: number): number {
  const scraped = snapshot.freshness === "fresh" ? snapshot.load : undefined;
  const own = snapshot.requestsInFlight > 0 ? snapshot : undefined;
  const ttft = scraped?.ttftMicros ?? own?.ttftMicros ?? NaN;
  const tpot = scraped?.tpotMicros ?? own?.tpotMicros ?? NaN;
  return ttft + outputTokens * tpot;
}
