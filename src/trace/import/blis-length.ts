import type { Random } from "#core/base/random.ts";
import type { BlisDistribution } from "./blis-spec-schema.ts";
import { draw } from "./distribution.ts";
import { ImportError } from "./import-report.ts";
import { portablePower } from "./portable-math.ts";

/** A length in tokens, at least 1, from one of BLIS's distributions. */
export function blisLength(from: BlisDistribution, random: Random): number {
  return Math.max(1, Math.round(value(from, random)));
}

function value({ type, params }: BlisDistribution, random: Random): number {
  const min = params["min"] ?? 0;
  const max = params["max"] ?? Number.MAX_SAFE_INTEGER;
  const of = (key: string): number => {
    const given = params[key];
    if (given === undefined) throw new ImportError(`distribution ${type}: expected params.${key}`);
    return given;
  };
  switch (type) {
    case "constant":
      return of("value");
    case "gaussian":
      return draw({ distribution: "normal", mean: of("mean"), stddev: of("std_dev"), min, max }, random);
    case "exponential":
      return draw({ distribution: "exponential", mean: of("mean"), min, max }, random);
    case "lognormal":
      return lognormal(of("mu"), of("sigma"), min, max, random);
    case "pareto_lognormal":
      // A Pareto tail for `mix_weight` of the draws: xm / u^(1 / alpha).
      return random.next() < of("mix_weight")
        ? Math.min(max, of("xm") / portablePower(1 - random.next(), 1 / of("alpha")))
        : lognormal(of("mu"), of("sigma"), min, max, random);
    case "empirical":
      return empirical(params, random);
  }
}

function lognormal(mu: number, sigma: number, min: number, max: number, random: Random): number {
  // The median is e^mu, taken as a power so that it is the same on every machine.
  return draw({ distribution: "lognormal", median: portablePower(Math.E, mu), sigma, min, max }, random);
}

/** Lengths by weight; the keys are whole numbers. */
function empirical(weights: Readonly<Record<string, number>>, random: Random): number {
  const entries = Object.entries(weights).map(([length, weight]) => [Number(length), weight] as const);
  entries.sort(([a], [b]) => a - b);
  let ticket = random.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
  return (entries.find(([, weight]) => (ticket -= weight) < 0) ?? entries.at(-1))?.[0] ?? 1;
}
