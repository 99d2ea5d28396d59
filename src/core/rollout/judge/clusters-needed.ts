import type { Design } from "../plan/rollout-plan.ts";
import type { TimeFigure } from "./outcome.ts";

const CLUSTERS_MIN = 40;
const PER_SQUARED_SKEWNESS = 10;

/**
 * Sessions or requests that the smaller arm must have before its mean is compared. Times are skewed: of few of them
 * those that waited long are missing more often than not, and the deviation is too small then as well, so that the arm
 * looks surely quicker. The error of a t-test falls with skewness over the root of the number (P. Hall, "The Bootstrap
 * and Edgeworth Expansion", 1992; rules of thumb for A/B tests ask for multiples of the squared skewness: R. Kohavi and
 * others, "Seven rules of thumb for web site experimenters", 2014). 0 for windows, and for tenants, which are few and
 * have many requests each.
 */
export function clustersNeeded(design: Design, figure: TimeFigure, skewness = 0): number {
  const clustered = (design.kind === "split" || design.kind === "canary") && figure === "mean";
  return clustered && design.by !== "tenant" ? Math.max(CLUSTERS_MIN, PER_SQUARED_SKEWNESS * skewness ** 2) : 0;
}
