import { ConfigError } from "#config/config-error.ts";
import { unknownWord } from "#config/problem.ts";
import { MICROS_PER_MILLI } from "#core/units.ts";
import { FITNESS_KEYS, type FitnessKey, type FitnessWeights } from "#sim/result/fitness.ts";
import type { SloTarget, SloTargets } from "#sim/result/slo.ts";

/** Reads `critical:200:50:,batch:::60000`: milliseconds of TTFT, TPOT and E2E by class. */
export function parseSlo(text: string): SloTargets {
  return Object.fromEntries(
    text.split(",").map((part): [string, SloTarget] => {
      const [sloClass = "", ...millis] = part.trim().split(":");
      const values = millis.map((one) => (one === "" ? undefined : Number(one) * MICROS_PER_MILLI));
      if (values.length !== 3 || values.some((value) => value !== undefined && !(value > 0))) {
        throw new ConfigError([`--slo: expected class:ttft:tpot:e2e in milliseconds, got ${JSON.stringify(part)}`]);
      }
      const [ttftMicros, tpotMicros, e2eMicros] = values;
      return [
        sloClass,
        {
          ...(ttftMicros !== undefined && { ttftMicros }),
          ...(tpotMicros !== undefined && { tpotMicros }),
          ...(e2eMicros !== undefined && { e2eMicros }),
        },
      ];
    }),
  );
}

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
