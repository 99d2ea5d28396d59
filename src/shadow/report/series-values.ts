import type { Metric } from "../question/what-if.ts";
import { OBSERVED, type PageData } from "./page-data.ts";

/** Ascending values of a series, without those of requests that never got there or were not answered whole. */
export function seriesValues(data: PageData, name: string, metric: Metric): Float64Array {
  const values =
    name === OBSERVED && data.observed !== undefined
      ? Float64Array.from(data.observed, (one) => (one.ok ? observedValue(one, metric) : NaN))
      : data.outcomes.find((outcome) => outcome.name === name)?.[metric];
  return (values ?? new Float64Array(0)).filter((value) => value >= 0).sort();
}

function observedValue(one: NonNullable<PageData["observed"]>[number], metric: Metric): number {
  if (metric === "tpotMicros")
    return one.outputTokens > 1 ? (one.e2eMicros - one.ttftMicros) / (one.outputTokens - 1) : NaN;
  return one[metric];
}
