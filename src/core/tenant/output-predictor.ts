import { Ewma } from "../endpoint/ewma.ts";
import { RecentMap } from "../base/recent-map.ts";
import type { Micros } from "../base/units.ts";
import { tokensOfEach } from "../latency/latency-model.ts";
import type { RouteRequest } from "../request/request.ts";

/** Tenants remembered. */
const TENANTS_MAX = 65_536;
const TAU_MICROS = 300_000_000;
const OUTPUT_PER_INPUT = 1.5;

type Asked = Pick<RouteRequest, "tenant" | "promptTokens" | "sequences">;

/** Guesses how many tokens all answers to a request will have. */
export interface LengthPrediction {
  predict(asked: Asked): number;
  learn(asked: Asked, at: Micros, outputTokens: number): void;
}

/**
 * ratio: 1.5 times the prompt, rounded up (AIBrix). observed: the tenant's own moving mean of one answer for each that is
 * asked for, the ratio before the first.
 */
export function outputPredictor(kind: "ratio" | "observed"): LengthPrediction {
  const means = new RecentMap<string, Ewma>(TENANTS_MAX);
  const ratio = (promptTokens: number) => Math.ceil(promptTokens * OUTPUT_PER_INPUT);
  return {
    predict({ tenant, promptTokens, sequences }) {
      const mean = means.get(tenant)?.value;
      return mean === undefined ? ratio(promptTokens) : mean * sequences;
    },
    learn({ tenant, sequences }, at, outputTokens) {
      if (kind === "ratio") return;
      const mean = means.get(tenant) ?? new Ewma(TAU_MICROS);
      mean.add(at, tokensOfEach(outputTokens, sequences));
      means.set(tenant, mean);
    },
  };
}
