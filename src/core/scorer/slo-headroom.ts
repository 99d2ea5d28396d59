import { FORECASTER_PARAMETERS, LatencyForecaster } from "./latency-forecaster.ts";
import { ABSTAIN, scorerPlugin } from "./scorer.ts";
import { TARGET_PARAMETERS, targetUse } from "./slo-targets.ts";

/**
 * Keeps a request within its targets, by the same forecasts as predicted-latency:
 *
 *     use   = max(predicted TTFT / target, predicted TPOT / target)
 *     score = 1 while use <= 1, else 1 / use
 *
 * so that other scorers choose among the endpoints that hold the targets, and where none does, it is the one that misses
 * by least. It abstains where nothing is promised.
 */
export const sloHeadroom = scorerPlugin({
  summary: "whether the predicted TTFT and TPOT stay within the request's targets",
  reads: ["ledger", "scrape:load", "scrape:kv", "prefix-index", "usage", "observed-latency"],
  source: "gnomon; targets by request as llm-d's x-slo-ttft-ms, predictions by predicted-latency's model",
  parameters: { ...TARGET_PARAMETERS, ...FORECASTER_PARAMETERS },
  create(name, parameters) {
    const forecaster = new LatencyForecaster(parameters);
    return {
      name,
      score(request, candidates, scores) {
        for (let i = 0; i < candidates.length; i++) {
          const use = targetUse(request, forecaster.forecast(request, candidates[i]!), parameters);
          scores[i] = use === undefined ? ABSTAIN : 1 / Math.max(1, use);
        }
      },
      forecast: (request, candidate) => forecaster.forecast(request, candidate),
      note: (chosen) => forecaster.note(chosen),
      observe: (input, decision, request) => forecaster.observe(input, decision, request),
    };
  },
});
