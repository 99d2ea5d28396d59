import { pickerPlugin } from "./picker.ts";

/**
 * Picks a candidate with a chance in proportion to its total; when all totals are 0, any with the same chance.
 *
 *     P(i) = total_i / sum of totals
 *
 * A-Res (Efraimidis and Spirakis) for one pick is this distribution; a walk along the sum needs one draw and no power.
 */
export const weightedRandom = pickerPlugin({
  summary: "a candidate drawn with a chance in proportion to its total",
  reads: ["none"],
  source: "llm-d weighted-random-picker",
  parameters: {},
  create: (name) => ({
    name,
    followsTotals: false,
    epsilon: 0,
    pick(_request, candidates, totals, random) {
      let sum = 0;
      for (let i = 0; i < candidates.length; i++) sum += totals[i]!;
      if (sum <= 0) return random.below(candidates.length);
      let left = random.next() * sum;
      for (let i = 0; i < candidates.length; i++) {
        left -= totals[i]!;
        if (left < 0 && totals[i]! > 0) return i;
      }
      return totals.subarray(0, candidates.length).findLastIndex((total) => total > 0);
    },
  }),
});
