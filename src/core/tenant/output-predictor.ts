import { Ewma } from "../endpoint/ewma.ts";
import { RecentMap } from "../base/recent-map.ts";
import type { Micros } from "../base/units.ts";

/** Tenants remembered. */
const TENANTS_MAX = 65_536;
const TAU_MICROS = 300_000_000;
const OUTPUT_PER_INPUT = 1.5;

/** Guesses how many tokens an answer will have. */
export interface LengthPrediction {
  predict(tenant: string, promptTokens: number): number;
  learn(tenant: string, at: Micros, outputTokens: number): void;
}

/** ratio: 1.5 times the prompt, rounded up (AIBrix). observed: the tenant's own moving mean, the ratio before the first. */
export function outputPredictor(kind: "ratio" | "observed"): LengthPrediction {
  const means = new RecentMap<string, Ewma>(TENANTS_MAX);
  const ratio = (promptTokens: number) => Math.ceil(promptTokens * OUTPUT_PER_INPUT);
  return {
    predict: (tenant, promptTokens) => means.get(tenant)?.value ?? ratio(promptTokens),
    learn(tenant, at, outputTokens) {
      if (kind === "ratio") return;
      const mean = means.get(tenant) ?? new Ewma(TAU_MICROS);
      mean.add(at, outputTokens);
      means.set(tenant, mean);
    },
  };
}
