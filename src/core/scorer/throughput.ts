import type { EndpointId } from "../endpoint/endpoint.ts";
import { Ewma } from "../endpoint/ewma.ts";
import { RequestTable } from "../base/request-table.ts";
import { MICROS_PER_SECOND } from "../base/units.ts";
import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers endpoints whose requests carry the least token work, as AIBrix's code does (its documentation has the opposite).
 *
 *     cost = 2 * mean prompt tokens + mean output tokens, per finished request there
 *
 * Scaled between the candidates; one without a finished request is abstained from. The formula knows no load: whoever
 * had the lightest requests gets all of the next ones, however many wait there.
 */
export const throughput = scorerPlugin({
  summary: "mean token work of the requests that finished there, whatever the load; scaled between the candidates",
  reads: ["usage"],
  source: "AIBrix throughput",
  parameters: {
    tauSeconds: { type: "number", default: 60, min: 0.1, meaning: "time constant of the means" },
  },
  create(name, { tauSeconds }) {
    const work = new Map<EndpointId, Ewma>();
    const placed = new RequestTable<EndpointId>();
    return {
      name,
      score(_request, candidates, scores) {
        for (let i = 0; i < candidates.length; i++) scores[i] = work.get(candidates[i]!.id)?.value ?? NaN;
        lowerIsBetter(scores, candidates.length);
      },
      observe(input, decision, request) {
        if (decision?.kind === "routed") placed.set(decision.requestId, decision.endpoint);
        if (input.kind === "endpoint-left") work.delete(input.endpoint);
        if (input.kind !== "request-finished" || request === undefined) return;
        const endpoint = placed.get(input.requestId);
        placed.delete(input.requestId);
        if (endpoint === undefined || input.outcome !== "ok" || input.outputTokens === undefined) return;
        let mean = work.get(endpoint);
        if (mean === undefined) work.set(endpoint, (mean = new Ewma(tauSeconds * MICROS_PER_SECOND)));
        mean.add(input.at, 2 * (input.promptTokens ?? request.promptTokens) + input.outputTokens);
      },
    };
  },
});
