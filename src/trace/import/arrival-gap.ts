import type { Random } from "#core/base/random.ts";
import { gamma } from "./distribution.ts";
import { exponential } from "./exponential.ts";
import { exp, ln, portablePower } from "./portable-math.ts";

/** The gaps' character, apart from the rate: their mean is always 1. */
export type GapProcess =
  | { readonly process: "constant" | "poisson" | "together" }
  /** `cv` is the coefficient of variation. */
  | { readonly process: "gamma"; readonly cv: number }
  /** Below 1 burstier than Poisson, above 1 more regular. */
  | { readonly process: "weibull"; readonly shape: number };

/** Draws gaps of mean 1; 0 for "together". */
export function gapDraw(gaps: GapProcess, random: Random): () => number {
  switch (gaps.process) {
    case "constant":
      return () => 1;
    case "together":
      return () => 0;
    case "poisson":
      return () => exponential(random);
    case "gamma": {
      const shape = 1 / (gaps.cv * gaps.cv);
      return () => gamma(shape, random);
    }
    case "weibull": {
      // x = (-ln u)^(1/k) / Gamma(1 + 1/k)
      const mean = gammaFunction(1 + 1 / gaps.shape);
      return () => portablePower(exponential(random), 1 / gaps.shape) / mean;
    }
  }
}

/** Gamma(x) for x >= 1, by Lanczos' approximation with g = 7 and nine terms; relative error below 1e-13. */
export function gammaFunction(x: number): number {
  const z = x - 1;
  let sum = LANCZOS[0]!;
  for (let i = 1; i < LANCZOS.length; i++) sum += LANCZOS[i]! / (z + i);
  const t = z + 7.5;
  return SQRT_TWO_PI * exp((z + 0.5) * ln(t) - t) * sum;
}

const SQRT_TWO_PI = 2.5066282746310002;
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];
