import type { Random } from "#core/base/random.ts";
import * as z from "zod";
import { exponential } from "./exponential.ts";
import { exp, ln, portablePower } from "./portable-math.ts";
import { strict } from "./strict-object.ts";

const positive = z.number().positive();
const nonnegative = z.number().nonnegative();
const bounds = { min: nonnegative.default(0), max: nonnegative.default(Number.MAX_SAFE_INTEGER) };

const KINDS = z.discriminatedUnion(
  "distribution",
  [
    strict({ distribution: z.literal("constant"), value: nonnegative }),
    strict({ distribution: z.literal("uniform"), min: nonnegative, max: nonnegative }),
    strict({ distribution: z.literal("exponential"), mean: positive, ...bounds }),
    strict({ distribution: z.literal("normal"), mean: nonnegative, stddev: nonnegative, ...bounds }),
    strict({ distribution: z.literal("lognormal"), median: positive, sigma: nonnegative.max(10), ...bounds }),
    strict({ distribution: z.literal("geometric"), mean: z.number().min(1), ...bounds }),
    strict({ distribution: z.literal("empirical"), values: z.array(nonnegative).min(1) }),
  ],
  { error: "expected distribution: constant, uniform, exponential, normal, lognormal, geometric or empirical" },
);

/** A distribution of lengths or times; a plain number is a constant. Draws outside [min, max] are set to the bound. */
export const DISTRIBUTION = z
  .union([nonnegative.transform((value) => ({ distribution: "constant" as const, value })), KINDS])
  .refine((value) => !("min" in value) || value.min <= value.max, { error: "expected min <= max" });

export type DrawnDistribution = z.output<typeof DISTRIBUTION>;

export function draw(from: DrawnDistribution, random: Random): number {
  switch (from.distribution) {
    case "constant":
      return from.value;
    case "uniform":
      return from.min + random.next() * (from.max - from.min);
    case "exponential":
      return clamp(from.mean * exponential(random), from.min, from.max);
    case "normal":
      return clamp(from.mean + from.stddev * normal(random), from.min, from.max);
    case "lognormal":
      return clamp(from.median * exp(from.sigma * normal(random)), from.min, from.max);
    case "geometric":
      return clamp(geometric(from.mean, random), from.min, from.max);
    case "empirical":
      return from.values[random.below(from.values.length)] ?? 0;
  }
}

/** Mean 0, deviation 1, by the polar method (G. Marsaglia and T. A. Bray, 1964). */
function normal(random: Random): number {
  for (;;) {
    const x = 2 * random.next() - 1;
    const y = 2 * random.next() - 1;
    const square = x * x + y * y;
    if (square > 0 && square < 1) return x * Math.sqrt((-2 * ln(square)) / square);
  }
}

/** Trials until the first success, at least 1, with the given mean: 1 + floor(ln u / ln(1 - 1 / mean)). */
function geometric(mean: number, random: Random): number {
  return mean === 1 ? 1 : 1 + Math.floor(ln(1 - random.next()) / ln(1 - 1 / mean));
}

/**
 * Gamma of the given shape and mean 1 (G. Marsaglia and W. W. Tsang, 2000: A simple method for generating gamma
 * variables); a shape below 1 goes through shape + 1.
 */
export function gamma(shape: number, random: Random): number {
  const boosted = shape < 1;
  const d = (boosted ? shape + 1 : shape) - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(random);
    const root = 1 + c * x;
    if (root <= 0) continue;
    const v = root * root * root;
    const u = 1 - random.next();
    if (ln(u) >= 0.5 * x * x + d - d * v + d * ln(v)) continue;
    return (d * v * (boosted ? portablePower(1 - random.next(), 1 / shape) : 1)) / shape;
  }
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}
