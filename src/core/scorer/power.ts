import type { EndpointId } from "../endpoint/endpoint.ts";
import { scorerPlugin } from "../profile/plugin.ts";
import { RollingMean } from "./rolling-mean.ts";
import { ABSTAIN } from "./scorer.ts";

/**
 * Prefers endpoints that draw little power.
 *
 *     score = 1 - watts / the most watts in the fleet, watts being a rolling mean
 *
 * An endpoint without a reading in the window is abstained from: its other terms count in full instead of a perfect 0 W.
 */
export const power = scorerPlugin({
  summary: "rolling mean of the endpoint's power against the fleet's highest",
  reads: ["scrape:power"],
  source: "requirements 002 norm_watts(n)",
  parameters: {
    windowSeconds: { type: "number", default: 30, min: 0.1, max: 3600, meaning: "length of the rolling mean" },
  },
  create(name, { windowSeconds }) {
    const means = new Map<EndpointId, RollingMean>();
    return {
      name,
      score(_request, candidates, scores) {
        const at = candidates[0]?.at ?? 0;
        let highest = 0;
        for (const mean of means.values()) highest = Math.max(highest, mean.value(at) ?? 0);
        for (let i = 0; i < candidates.length; i++) {
          const watts = means.get(candidates[i]!.id)?.value(at);
          scores[i] = watts === undefined ? ABSTAIN : highest === 0 ? 1 : 1 - watts / highest;
        }
      },
      observe(input) {
        if (input.kind === "endpoint-left") means.delete(input.endpoint);
        if (input.kind !== "load-observed" || input.load.watts === undefined) return;
        let mean = means.get(input.endpoint);
        if (mean === undefined) means.set(input.endpoint, (mean = new RollingMean(windowSeconds * 1_000_000)));
        mean.add(input.at, input.load.watts);
      },
    };
  },
});
