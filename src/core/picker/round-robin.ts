import { pickerPlugin } from "./picker.ts";

/** Picks candidates in turn, in order of id: the n-th decision goes to n mod candidates. */
export const roundRobin = pickerPlugin({
  summary: "candidates in turn",
  reads: ["none"],
  source: "BLIS round-robin",
  parameters: {},
  create(name) {
    let routed = 0;
    return {
      name,
      followsTotals: false,
      epsilon: 0,
      pick: (_request, candidates) => routed % candidates.length,
      observe(_input, decision) {
        if (decision.kind === "routed") routed++;
      },
    };
  },
});
