import { newTokens } from "../endpoint/gauge.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint where expected prefill work times batch size is smallest.
 *
 *     cost  = (queued prefill tokens + max(floor, new tokens)) * (requests in flight + plusOne)
 *     score = (best cost + 1) / (cost + 1)
 *
 * The score keeps the order and the ties of the cost. `plusOne` false and `floor` 0 give the formula of the document, in
 * which every idle endpoint ties at 0.
 */
export const lmetric = scorerPlugin({
  summary: "expected prefill tokens times requests there",
  reads: ["ledger", "prefix-index"],
  source: "B3 Routing Policies (lmetric); LMetric (arXiv 2603.15202)",
  parameters: {
    plusOne: {
      type: "boolean",
      default: true,
      meaning: "count this request in the batch, so that an idle endpoint is not free",
    },
    floor: { type: "integer", default: 1, min: 0, meaning: "least new tokens; an engine recomputes at least one" },
  },
  create: (name, { plusOne, floor }) => ({
    name,
    score(request, candidates, scores) {
      let best = Infinity;
      for (let i = 0; i < candidates.length; i++) {
        const candidate = candidates[i]!;
        const fresh =
          floor > 0
            ? Math.max(floor, newTokens(candidate, request.promptTokens))
            : request.promptTokens - candidate.hitTokens;
        const cost = (candidate.prefillTokensQueued + fresh) * (candidate.requestsInFlight + (plusOne ? 1 : 0));
        scores[i] = cost;
        best = Math.min(best, cost);
      }
      for (let i = 0; i < candidates.length; i++) scores[i] = (best + 1) / (scores[i]! + 1);
    },
  }),
});
