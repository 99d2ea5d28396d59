import type { EndpointId } from "../endpoint/endpoint.ts";
import { MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import { ABSTAIN, scorerPlugin } from "./scorer.ts";
import { WindowSum } from "./window-sum.ts";

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
  source: "Cognitora, KV-aware scoring, norm_watts(n)",
  parameters: {
    windowSeconds: { type: "number", default: 30, min: 0.1, max: 3600, meaning: "length of the rolling mean" },
  },
  create(name, { windowSeconds }) {
    const readings = new Map<EndpointId, WindowSum>();
    return {
      name,
      score(_request, candidates, scores) {
        const at = candidates[0]?.at ?? 0;
        let highest = 0;
        for (const window of readings.values()) highest = Math.max(highest, meanMilliwatts(window, at) ?? 0);
        for (let i = 0; i < candidates.length; i++) {
          const drawn = meanMilliwatts(readings.get(candidates[i]!.id), at);
          scores[i] = drawn === undefined ? ABSTAIN : highest === 0 ? 1 : 1 - drawn / highest;
        }
      },
      observe(input) {
        if (input.kind === "endpoint-left") readings.delete(input.endpoint);
        if (input.kind !== "load-observed" || input.load.watts === undefined) return;
        let window = readings.get(input.endpoint);
        if (window === undefined)
          readings.set(input.endpoint, (window = new WindowSum(windowSeconds * MICROS_PER_SECOND)));
        window.add(input.at, Math.round(input.load.watts * 1000));
      },
    };
  },
});

/** undefined when the window holds no reading. */
function meanMilliwatts(window: WindowSum | undefined, at: Micros): number | undefined {
  const count = window?.count(at) ?? 0;
  return window === undefined || count === 0 ? undefined : window.sum(at) / count;
}
