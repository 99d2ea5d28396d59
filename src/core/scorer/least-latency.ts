import type { Snapshot } from "../endpoint/snapshot.ts";
import { scorerPlugin } from "../profile/plugin.ts";
import { lowerIsBetter } from "./min-max.ts";

/**
 * Prefers the endpoint where a typical answer would be over first.
 *
 *     cost = TTFT + outputTokensGuess * TPOT
 *
 * by the last scrape's means, else by this router's own. Scaled between the candidates; one that is unknown scores 0.
 */
export const leastLatency = scorerPlugin({
  summary: "expected end-to-end latency there, scaled between the candidates",
  reads: ["scrape:latency", "observed-latency"],
  source: "AIBrix least-latency",
  parameters: {
    outputTokensGuess: { type: "number", default: 100, min: 1, meaning: "tokens of a typical answer" },
  },
  create: (name, { outputTokensGuess }) => ({
    name,
    score(_request, candidates, scores) {
      const costs = candidates.map((candidate) => latency(candidate, outputTokensGuess));
      const worst = Math.max(0, ...costs.filter((cost) => cost !== undefined));
      costs.forEach((cost, i) => (scores[i] = cost ?? worst));
      lowerIsBetter(scores, candidates.length);
      costs.forEach((cost, i) => (scores[i] = cost === undefined ? 0 : scores[i]!));
    },
  }),
});

function latency({ freshness, load, ttftMicros, tpotMicros }: Snapshot, outputTokens: number): number | undefined {
  const scraped = freshness === "fresh" ? load : undefined;
  const ttft = scraped?.ttftMicros ?? ttftMicros;
  const tpot = scraped?.tpotMicros ?? tpotMicros;
  return ttft === undefined || tpot === undefined ? undefined : ttft + outputTokens * tpot;
}
