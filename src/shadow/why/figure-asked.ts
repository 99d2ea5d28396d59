import { percentile } from "#core/base/quantile.ts";
import { meanOf } from "#shadow/figure/mean-of.ts";

/** What is asked about: a time of requests, its mean or a percentile of it. */
export interface FigureAsked {
  readonly time: "ttft" | "e2e";
  /** "mean", or in (0, 100). */
  readonly of: "mean" | number;
}

/** The figure of these values; they are put in order where it is a percentile. */
export function figureOf(values: Float64Array, of: FigureAsked["of"]): number {
  if (values.length === 0) return NaN;
  return of === "mean" ? meanOf(values) : percentile(values.sort(), of);
}

export function figureName({ time, of }: FigureAsked): string {
  return of === "mean" ? `mean ${time.toUpperCase()}` : `p${of} ${time.toUpperCase()}`;
}
