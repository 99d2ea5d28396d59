import { runningRequests } from "../endpoint/gauge.ts";
import { RequestTable } from "../base/request-table.ts";
import { TokenTracker } from "../tenant/token-tracker.ts";
import { type LengthPrediction, outputPredictor } from "../tenant/output-predictor.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "../base/units.ts";
import { scorerPlugin } from "./scorer.ts";

const UNIT_MICROS = {
  minutes: 60 * MICROS_PER_SECOND,
  seconds: MICROS_PER_SECOND,
  milliseconds: MICROS_PER_MILLI,
} as const;

/**
 * Places a tenant by how much service it had of late: the more, the further down the list of endpoints (in order of id),
 * balanced against load. Lower is better:
 *
 *     bucket   = max(minTokens, (min + max) / 2) over tenants in the window; (minTokens + maxTokens) / 2 with none
 *     norm     = min(tenant's tokens / bucket, n - 1)
 *     cost_i   = fairnessWeight * |i - norm| + utilizationWeight * min(running_i / maxPodLoad, 1)
 *     score_i  = 1 - cost_i / (fairnessWeight * (n - 1) + utilizationWeight)
 *
 * A request without a tenant is nobody's: every endpoint scores 1, and nothing is charged.
 *
 * Tokens are charged with an estimate at the decision and corrected by the engine's counts at the end. `max` measures a
 * tenant against the one with the most service instead of the middle of the range.
 */
export const vtc = scorerPlugin({
  summary: "virtual token counter: fairness among tenants against the endpoint's load",
  reads: ["tenant", "usage", "scrape:load", "ledger"],
  source: "AIBrix, Routing Algorithms (vtc-basic); Sheng et al., Fairness in Serving Large Language Models",
  parameters: {
    windowSize: {
      type: "integer",
      default: 5,
      min: 1,
      meaning: "length of the window in windowUnit (AIBRIX_ROUTER_VTC_TOKEN_TRACKER_WINDOW_SIZE)",
    },
    windowUnit: {
      type: "choice",
      default: "minutes",
      values: ["minutes", "seconds", "milliseconds"],
      meaning: "unit of the window (..._TIME_UNIT)",
    },
    minTokens: { type: "number", default: 1000, min: 1, meaning: "least bucket (..._MIN_TOKENS)" },
    maxTokens: {
      type: "number",
      default: 8000,
      min: 1,
      meaning: "top of the range before there is any tenant (..._MAX_TOKENS)",
    },
    inputTokenWeight: {
      type: "number",
      default: 1,
      min: 0,
      meaning: "weight of prompt tokens (AIBRIX_ROUTER_VTC_BASIC_INPUT_TOKEN_WEIGHT)",
    },
    outputTokenWeight: {
      type: "number",
      default: 2,
      min: 0,
      meaning: "weight of output tokens (..._OUTPUT_TOKEN_WEIGHT)",
    },
    maxPodLoad: {
      type: "number",
      default: 100,
      min: 1,
      meaning: "running requests that count as full (..._MAX_POD_LOAD)",
    },
    fairnessWeight: { type: "number", default: 1, min: 0, meaning: "weight of fairness (..._FAIRNESS_WEIGHT)" },
    utilizationWeight: { type: "number", default: 1, min: 0, meaning: "weight of load (..._UTILIZATION_WEIGHT)" },
    bucket: {
      type: "choice",
      default: "middle",
      values: ["middle", "max"],
      meaning: "what a tenant is measured against",
    },
    outputPrediction: {
      type: "choice",
      default: "ratio",
      values: ["ratio", "observed"],
      meaning: "estimate of the answer: 1.5 times the prompt, or the tenant's own mean",
    },
  },
  create(name, options) {
    const unitMicros = UNIT_MICROS[options.windowUnit];
    const tracker = new TokenTracker({
      windowMicros: options.windowSize * unitMicros,
      bucketMicros: options.windowUnit === "milliseconds" ? MICROS_PER_MILLI : MICROS_PER_SECOND,
      inputWeight: options.inputTokenWeight,
      outputWeight: options.outputTokenWeight,
    });
    const predictor: LengthPrediction = outputPredictor(options.outputPrediction);
    const charged = new RequestTable<number>();
    return {
      name,
      score({ tenant }, candidates, scores) {
        if (tenant === "") return void scores.fill(1, 0, candidates.length);
        const last = candidates.length - 1;
        const at = candidates[0]?.at ?? 0;
        const span = tracker.span(at) ?? { min: options.minTokens, max: options.maxTokens };
        const bucket = Math.max(options.minTokens, options.bucket === "max" ? span.max : (span.min + span.max) / 2);
        const norm = Math.min(tracker.total(tenant, at) / bucket, last);
        const worst = options.fairnessWeight * last + options.utilizationWeight;
        for (let i = 0; i <= last; i++) {
          const load = Math.min(runningRequests(candidates[i]!) / options.maxPodLoad, 1);
          const cost = options.fairnessWeight * Math.abs(i - norm) + options.utilizationWeight * load;
          scores[i] = worst === 0 ? 1 : 1 - cost / worst;
        }
      },
      observe(input, decision, request) {
        if (request === undefined || request.tenant === "") return;
        if (decision?.kind === "routed" && decision.attempt === 1) {
          const estimate = tracker.weigh(request.promptTokens, predictor.predict(request));
          charged.set(request.id, estimate);
          tracker.add(request.tenant, input.at, estimate);
        }
        if (input.kind !== "request-finished") return;
        const estimate = charged.get(request.id);
        charged.delete(request.id);
        if (estimate === undefined || input.outputTokens === undefined) return;
        predictor.learn(request, input.at, input.outputTokens);
        tracker.add(
          request.tenant,
          input.at,
          tracker.weigh(input.promptTokens ?? request.promptTokens, input.outputTokens) - estimate,
        );
      },
    };
  },
});
