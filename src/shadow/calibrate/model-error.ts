import { type PredictionError, predictionError } from "../figure/figures.ts";
import type { PerMetric } from "../figure/metric.ts";
import { type Evidence, tpotOf } from "./evidence.ts";
import type { ForcedOutcome } from "./forced-replay.ts";

export interface ModelError extends PerMetric<PredictionError | undefined> {
  readonly requests: number;
  /** Simulated over recorded cached tokens, less 1; undefined where the trace has none. */
  readonly cachedRelative: number | undefined;
}

/** How far the replay is from what happened, over the requests that `chosen` admits. */
export function modelErrorOf({ rows }: Evidence, outcome: ForcedOutcome, chosen: (row: number) => boolean): ModelError {
  const kept = rows.map((row, i) => row.ok && chosen(i));
  const observed = (value: (row: (typeof rows)[number]) => number) =>
    Float64Array.from(rows, (row, i) => (kept[i]! ? value(row) : NaN));
  let simulated = 0;
  let recorded = 0;
  rows.forEach(({ cachedTokens }, i) => {
    if (!kept[i]! || !(cachedTokens >= 0) || !(outcome.cachedTokens[i]! >= 0)) return;
    simulated += outcome.cachedTokens[i]!;
    recorded += cachedTokens;
  });
  return {
    requests: kept.filter(Boolean).length,
    ttftMicros: predictionError(
      outcome.ttftMicros,
      observed(({ ttftMicros }) => ttftMicros),
    ),
    tpotMicros: predictionError(outcome.tpotMicros, observed(tpotOf)),
    e2eMicros: predictionError(
      outcome.e2eMicros,
      observed(({ e2eMicros }) => e2eMicros),
    ),
    cachedRelative: recorded > 0 ? simulated / recorded - 1 : undefined,
  };
}
