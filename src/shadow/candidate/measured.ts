import type { Distribution } from "#sim/result/distribution.ts";
import { figuresOf } from "../figure/figures.ts";
import { type PerMetric, perMetric } from "../figure/metric.ts";
import type { Observed } from "../recorded/observed.ts";
import { uncomparedReason } from "../recorded/uncompared-reason.ts";

/** A time of each request, NaN where it is none to compare with: it was not answered whole by one endpoint. */
export function observedTimes(observed: readonly Observed[]): PerMetric<Float64Array> {
  const column = (value: (one: Observed) => number): Float64Array =>
    Float64Array.from(observed, (one) => (uncomparedReason(one) === undefined ? value(one) : NaN));
  return {
    ttftMicros: column((one) => one.ttftMicros),
    tpotMicros: column((one) =>
      one.outputTokens > 1 ? (one.e2eMicros - one.ttftMicros) / (one.outputTokens - 1) : NaN,
    ),
    e2eMicros: column((one) => one.e2eMicros),
  };
}

/** What really happened, as predictions are shown. */
export function measuredFigures(observed: readonly Observed[]): PerMetric<Distribution | undefined> {
  const times = observedTimes(observed);
  return perMetric((metric) => figuresOf(times[metric]));
}
