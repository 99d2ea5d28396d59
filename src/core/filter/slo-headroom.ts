import { FORECASTER_PARAMETERS, LatencyForecaster } from "../scorer/latency-forecaster.ts";
import { TARGET_PARAMETERS, targetUse } from "../scorer/slo-targets.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Keeps the endpoints at which predicted TTFT and TPOT stay within the request's targets, with `slack` of them to spare or
 * beyond. Where none does, all are kept, or a request that is sheddable (priority above `sheddableAbove`; vLLM's, where
 * lower runs earlier) is refused, so that it takes nothing from those that can still be served in time.
 */
export const sloHeadroom = filterPlugin({
  summary: "drops endpoints at which the request would miss its TTFT or TPOT target, as predicted",
  reads: ["ledger", "scrape:load", "scrape:kv", "prefix-index", "usage", "observed-latency"],
  source: "gnomon; llm-d slo-headroom-tier-filter, with gnomon's own predictions",
  parameters: {
    ...TARGET_PARAMETERS,
    slack: { type: "number", default: 1, min: 0.01, max: 100, meaning: "share of a target that may be used" },
    whenEmpty: {
      type: "choice",
      default: "keep-all",
      values: ["keep-all", "refuse-sheddable", "refuse"],
      meaning: "what to do when none holds the targets",
    },
    sheddableAbove: { type: "number", default: 0, meaning: "priority above which a request is sheddable" },
    ...FORECASTER_PARAMETERS,
  },
  create(name, parameters) {
    const { slack, whenEmpty, sheddableAbove } = parameters;
    const forecaster = new LatencyForecaster(parameters);
    return {
      name,
      filter(request, candidates, keep) {
        let kept = 0;
        for (let i = 0; i < candidates.length; i++) {
          const use = targetUse(request, forecaster.forecast(request, candidates[i]!), parameters);
          keep[i] = use === undefined || use <= slack ? 1 : 0;
          kept += keep[i]!;
        }
        const refuses =
          whenEmpty === "refuse" || (whenEmpty === "refuse-sheddable" && request.priority > sheddableAbove);
        if (kept === 0 && !refuses) keep.fill(1, 0, candidates.length);
      },
      note: (chosen) => forecaster.note(chosen),
      observe: (input, decision, request) => forecaster.observe(input, decision, request),
    };
  },
});
