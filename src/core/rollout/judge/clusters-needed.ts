import type { Design } from "../plan/rollout-plan.ts";
import type { TimeFigure } from "./outcome.ts";

const CLUSTERS_MIN = 40;
const PER_SQUARED_SKEWNESS = 10;
/** Of a size, groups of sessions and tenants: fewer do not show how much they differ. */
const GROUPS_MIN = 8;
export const TENANTS_MIN = 8;

/**
 * Sessions or requests that the smaller arm must have before its mean is compared. Times are skewed: of few of them
 * those that waited long are missing more often than not, and the deviation is too small then as well, so that the arm
 * looks surely quicker. The error of a t-test falls with skewness over the root of the number (P. Hall, "The Bootstrap
 * and Edgeworth Expansion", 1992; rules of thumb for A/B tests ask for multiples of the squared skewness: R. Kohavi and
 * others, "Seven rules of thumb for web site experimenters", 2014). 0 for windows, and for tenants, which are few and
 * have many requests each. A quantile is by groups of clusters, of which a few dozen degrees of freedom are enough.
 */
export function clustersNeeded(design: Design, figure: TimeFigure, skewness = 0): number {
  if (design.kind !== "split" && design.kind !== "canary") return 0;
  if (design.by === "tenant") return TENANTS_MIN;
  return figure === "mean" ? Math.max(CLUSTERS_MIN, PER_SQUARED_SKEWNESS * skewness ** 2) : GROUPS_MIN;
}
