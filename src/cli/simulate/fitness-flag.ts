import { ConfigError } from "#config/config-error.ts";
import { unknownWord } from "#config/problem.ts";
import { FITNESS_KEYS, type FitnessKey, type FitnessWeights } from "#sim/result/fitness.ts";

/** Reads `throughput:0.5,p99_ttft:0.5`. */
export function parseFitness(text: string): FitnessWeights {
  const weights: Partial<Record<FitnessKey, number>> = {};
  for (const part of text.split(",")) {
    const [name = "", weight = ""] = part.split(":").map((one) => one.trim());
    const key = FITNESS_KEYS.find((known) => known === name);
    if (key === undefined) throw new ConfigError([`--fitness-weights: ${unknownWord("key", name, FITNESS_KEYS)}`]);
    if (weight === "" || !Number.isFinite(Number(weight)) || key in weights) {
      throw new ConfigError([`--fitness-weights: expected each key once with a number, got ${JSON.stringify(part)}`]);
    }
    weights[key] = Number(weight);
  }
  return weights;
}
