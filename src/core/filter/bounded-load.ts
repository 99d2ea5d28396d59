import { filterPlugin } from "./filter.ts";

/**
 * Keeps endpoints that may take one more request without exceeding their share, for consistent hashing with bounded
 * loads (Mirrokni et al.).
 *
 *     keep while requests < ceil(factor * (all requests + 1) / n)
 *
 * At least one candidate is always below it.
 */
export const boundedLoad = filterPlugin({
  summary: "drops endpoints that have more than their share of our requests",
  reads: ["ledger"],
  source: "consistent hashing with bounded loads; SMG prefix_hash",
  parameters: {
    factor: { type: "number", default: 1.25, min: 1, meaning: "multiple of the fair share that is allowed" },
  },
  create: (name, { factor }) => ({
    name,
    filter(_request, candidates, keep) {
      const all = candidates.reduce((sum, { requestsInFlight }) => sum + requestsInFlight, 0);
      const bound = Math.ceil((factor * (all + 1)) / candidates.length);
      candidates.forEach(({ requestsInFlight }, i) => (keep[i] = requestsInFlight < bound ? 1 : 0));
    },
  }),
});
