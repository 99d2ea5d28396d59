import { newTokens } from "../endpoint/gauge.ts";
import { EndpointWindows } from "./window-sum.ts";
import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint that was given the least work of late, this request's included.
 *
 *     cost = sum over the window of (new prompt tokens + expected output tokens) + new tokens of this prompt
 */
export const windowedWork = scorerPlugin({
  summary: "prefill and decode tokens dispatched there within a window, scaled between the candidates",
  reads: ["ledger", "prefix-index"],
  source: "Preble's exploration branch",
  parameters: {
    windowSeconds: { type: "number", default: 180, min: 0.1, max: 86_400, meaning: "length of the window" },
    outputTokensGuess: { type: "integer", default: 45, min: 0, meaning: "output tokens expected of a request" },
  },
  create(name, { windowSeconds, outputTokensGuess }) {
    const windows = new EndpointWindows(windowSeconds);
    return {
      name,
      score(request, candidates, scores) {
        for (let i = 0; i < candidates.length; i++) {
          const candidate = candidates[i]!;
          const past = windows.sum(candidate.id, candidate.at);
          scores[i] = past + newTokens(candidate, request.promptTokens);
        }
        lowerIsBetter(scores, candidates.length);
      },
      observe(input, decision, request) {
        if (input.kind === "endpoint-left") windows.forget(input.endpoint);
        if (decision?.kind !== "routed" || request === undefined) return;
        const work = newTokens(decision, request.promptTokens) + outputTokensGuess;
        windows.add(decision.endpoint, input.at, work);
      },
    };
  },
});
