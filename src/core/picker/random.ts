import { pickerPlugin } from "./picker.ts";

/** Picks any candidate, each with the same chance. */
export const randomPicker = pickerPlugin({
  summary: "any candidate, each with the same chance",
  reads: ["none"],
  source: "llm-d random-picker",
  parameters: {},
  create: (name) => ({
    name,
    followsTotals: false,
    epsilon: 0,
    pick: (_request, candidates, _totals, random) => random.below(candidates.length),
  }),
});
