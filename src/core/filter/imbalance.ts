import { filterPlugin } from "./filter.ts";

/**
 * Keeps affinity from feeding a hot endpoint. A candidate stays while
 *
 *     load <= factor * mean + slack
 *
 * over all candidates. The bound is each endpoint's own, so that one runaway endpoint does not switch affinity off for
 * the fleet. The least loaded candidate always stays: its load is at most the mean.
 */
export const imbalance = filterPlugin({
  summary: "drops endpoints whose load is far above the mean",
  reads: ["ledger", "scrape:load"],
  source: "gnomon; the idea of AIBrix's standard-deviation guard, per endpoint",
  parameters: {
    factor: { type: "number", default: 1.25, min: 1, meaning: "multiple of the mean load that is still allowed" },
    slack: {
      type: "number",
      default: 4,
      min: 0,
      meaning: "requests allowed above that, so that a quiet fleet is left alone",
    },
  },
  create: (name, { factor, slack }) => ({
    name,
    filter(_request, candidates, keep) {
      let sum = 0;
      for (const candidate of candidates) sum += candidate.effectiveLoad;
      const bound = factor * (sum / candidates.length) + slack;
      for (let i = 0; i < candidates.length; i++) keep[i] = candidates[i]!.effectiveLoad <= bound ? 1 : 0;
    },
  }),
});
