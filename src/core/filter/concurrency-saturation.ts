import type { Snapshot } from "../endpoint/snapshot.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Keeps endpoints below their concurrency limit; when none is below, the request is refused as saturated.
 *
 *     requests: in flight / requestsMax      tokens: queued prefill tokens / tokensMax      hybrid: the larger
 *     keep while below 1 + headroom
 */
export const concurrencySaturation = filterPlugin({
  summary: "drops endpoints at their limit of requests or tokens in flight, and refuses when all are",
  reads: ["ledger"],
  source: "llm-d concurrency-detector; Cognitora admission",
  parameters: {
    mode: { type: "choice", default: "requests", values: ["requests", "tokens", "hybrid"], meaning: "what is limited" },
    requestsMax: { type: "number", default: 100, min: 1, meaning: "requests in flight per endpoint" },
    tokensMax: { type: "number", default: 1_000_000, min: 1, meaning: "prompt tokens owed per endpoint" },
    headroom: { type: "number", default: 0, min: 0, meaning: "share above the limit that is still allowed" },
  },
  create: (name, { mode, requestsMax, tokensMax, headroom }) => ({
    name,
    filter(_request, candidates, keep) {
      candidates.forEach(
        (candidate, i) => (keep[i] = usedShare(candidate, mode, requestsMax, tokensMax) < 1 + headroom ? 1 : 0),
      );
    },
  }),
});

function usedShare(
  snapshot: Snapshot,
  mode: "requests" | "tokens" | "hybrid",
  requestsMax: number,
  tokensMax: number,
): number {
  const requests = snapshot.requestsInFlight / requestsMax;
  const tokens = snapshot.prefillTokensQueued / tokensMax;
  if (mode === "requests") return requests;
  return mode === "tokens" ? tokens : Math.max(requests, tokens);
}
