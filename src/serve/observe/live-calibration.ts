import { MICROS_PER_MILLI, MICROS_PER_SECOND, MILLIS_PER_SECOND } from "#core/base/units.ts";
import type { ShadowCalibration, ShadowError } from "#live/metrics/shadow-status.ts";
import type { ModelError } from "#shadow/calibrate/model-error.ts";
import { parametersOfEngine } from "#shadow/calibrate/parameters.ts";
import type { ShadowHost } from "#shadow/thread/host.ts";
import type { PredictionError } from "#shadow/figure/figures.ts";
import { byMetricName } from "./live-metric.ts";

/** How the engine model of a running shadow stands, for status and metrics. */
export function calibrationOf(
  { fits, fit, accepted, engine }: ReturnType<ShadowHost["status"]>,
  mode: ShadowCalibration["mode"],
): ShadowCalibration {
  const report = fit?.report;
  const { blockTokens, kvBlocks, sequencesMax, batchTokensMax } = engine;
  return {
    mode,
    source: accepted === undefined ? "configured" : "fitted",
    fitAgeSeconds: accepted === undefined ? undefined : accepted.ageMillis / MILLIS_PER_SECOND,
    fits,
    latest: fit && {
      outcome: fit.report.outcome,
      detail: fit.report.detail,
      requests: fit.report.requests,
      left: fit.report.left,
      millis: Math.round(fit.millis),
      cpuMillis: Math.round(fit.cpuMicros / MICROS_PER_MILLI),
      refused: errorsOf(fit.report.heldOutRefused),
    },
    sizes: { blockTokens, kvBlocks, sequencesMax, batchTokensMax },
    coefficients: finite(parametersOfEngine(engine)),
    standardErrors: finite(accepted?.report.errors),
    heldOut: errorsOf(report?.heldOut),
    heldOutByEndpoint: Object.fromEntries(
      Object.entries(report?.heldOutByEndpoint ?? {}).map(([endpoint, error]) => [endpoint, errorsOf(error)]),
    ),
    cachedTokensError: report?.heldOut?.cachedRelative,
  };
}

function errorsOf(error: ModelError | undefined): Record<string, ShadowError> {
  return byMetricName<PredictionError, ShadowError>(
    error,
    ({ pairs, predictedMean, observedMean, meanRelative, mape }) => ({
      requests: pairs,
      predictedSeconds: predictedMean / MICROS_PER_SECOND,
      observedSeconds: observedMean / MICROS_PER_SECOND,
      mean: meanRelative,
      mape,
    }),
  );
}

/** A variable at its bound has no standard error. */
function finite(values: Readonly<Partial<Record<string, number>>> | undefined): Record<string, number> {
  const kept: Record<string, number> = {};
  for (const [name, value] of Object.entries(values ?? {})) if (Number.isFinite(value)) kept[name] = value!;
  return kept;
}
