import { pickerPlugin } from "../profile/plugin.ts";

/** Picks any candidate, each with the same chance. */
export const randomPicker = pickerPlugin({
  summary: "any candidate, each with the same chance",
  reads: ["none"],
  source: "llm-d random-picker",
  parameters: {},
  create: (name) => ({
    name,
    followsTotals: false,
    pick: (_request, candidates, _totals, random) => random.below(candidates.length),
  }),
});
