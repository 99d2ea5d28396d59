import { pickerPlugin } from "./picker.ts";

/**
 * Picks a candidate with a chance that falls exponentially with its distance from the best total.
 *
 *     P(i) ~ exp((total_i - best) / temperature);  temperature 0 picks the best, lowest id first
 *
 * exp is computed by squaring (1 + x / 2^10)^(2^10): products only, so that every machine draws the same candidate.
 */
export const softmax = pickerPlugin({
  summary: "a candidate drawn by the softmax of the totals",
  reads: ["none"],
  source: "NVIDIA Dynamo KV router (router temperature)",
  parameters: {
    temperature: { type: "number", default: 0, min: 0, meaning: "0 is greedy, larger is more even" },
  },
  create: (name, { temperature }) => ({
    name,
    followsTotals: temperature === 0,
    epsilon: 0,
    pick(_request, candidates, totals, random) {
      let best = 0;
      for (let i = 1; i < candidates.length; i++) if (totals[i]! > totals[best]!) best = i;
      if (temperature === 0) return best;
      const chances = candidates.map((_, i) => exponential((totals[i]! - totals[best]!) / temperature));
      let left = random.next() * chances.reduce((sum, chance) => sum + chance, 0);
      for (let i = 0; i < chances.length; i++) {
        left -= chances[i]!;
        if (left < 0) return i;
      }
      return best;
    },
  }),
});

/** exp(x) for x <= 0, to about three digits. */
function exponential(x: number): number {
  if (x < -700) return 0;
  let value = Math.max(0, 1 + x / 1024);
  for (let squared = 0; squared < 10; squared++) value *= value;
  return value;
}
