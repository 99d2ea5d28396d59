import type { Snapshot } from "../endpoint/snapshot.ts";
import { ABSTAIN, scorerPlugin } from "./scorer.ts";

/**
 * Prefers bigger endpoints.
 *
 *     static:   score = the endpoint's size / the largest among the candidates; the size is the label `capacity` (any
 *               positive unit, for example VRAM times TP size), else the KV cache's tokens
 *     free-kv:  score = share of KV blocks that is free
 */
export const capacity = scorerPlugin({
  summary: "the endpoint's size against the largest candidate's",
  reads: ["labels", "scrape:kv"],
  source: "Cognitora, KV-aware scoring, capacity(n); Cognitora's code for free-kv",
  parameters: {
    measure: { type: "choice", default: "static", values: ["static", "free-kv"], meaning: "what counts as capacity" },
  },
  create: (name, { measure }) => ({
    name,
    score(_request, candidates, scores) {
      let largest = 0;
      for (const candidate of candidates) largest = Math.max(largest, size(candidate) ?? 0);
      for (let i = 0; i < candidates.length; i++) {
        const own = size(candidates[i]!);
        if (measure === "free-kv") scores[i] = 1 - candidates[i]!.kvUtilization;
        else scores[i] = own === undefined ? ABSTAIN : own / largest;
      }
    },
  }),
});

function size({ endpoint }: Snapshot): number | undefined {
  const labelled = Number(endpoint.labels["capacity"]);
  const tokens = labelled > 0 && Number.isFinite(labelled) ? labelled : endpoint.kvCapacityTokens;
  return tokens !== undefined && tokens > 0 ? tokens : undefined;
}
