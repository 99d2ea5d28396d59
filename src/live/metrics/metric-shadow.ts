import type { Registry } from "prom-client";
import { MICROS_PER_SECOND, MILLIS_PER_SECOND } from "#core/base/units.ts";
import { type MetricFamily, type MetricRow, NO_LABELS, registerFamily } from "./metric-family.ts";
import type { ShadowEvaluation, ShadowStatus } from "./shadow-status.ts";

/** The shadow's numbers. */
export function registerShadow(registry: Registry, status: () => ShadowStatus): void {
  const row = (value: number, labels: Record<string, string> = {}): MetricRow => labelled(value, labels);
  const family: Family = (type, name, help, rows) =>
    registerFamily(registry, { name: `gnomon_shadow_${name}`, help, type, rows: () => rows(status()) });

  family("gauge", "up", "Whether the shadow runs.", ({ state }) => [row(state === "running" ? 1 : 0)]);
  family("counter", "restarts_total", "Times that it crashed and was started again.", (now) => [row(now.restarts)]);
  family("counter", "dropped_total", "Records that it did not get, its buffer being full.", (now) => [
    row(now.dropped),
  ]);
  family("gauge", "lag_seconds", "Age of the oldest record that it has not worked through.", (now) => [
    row(now.lagMillis / MILLIS_PER_SECOND),
  ]);
  family("counter", "decisions_total", "Decisions replayed and compared.", ({ parity }) => [row(parity.decisions)]);
  family("counter", "parity_mismatches_total", "Decisions that came out otherwise in replay.", ({ parity }) => [
    row(parity.differences),
  ]);
  family(
    "counter",
    "unverifiable_total",
    "Decisions that could not be compared, since records before them are missing.",
    ({ parity }) => [row(parity.unverifiable)],
  );
  family("counter", "cpu_seconds_total", "Processor time of its thread.", (now) => [row(now.cpuSeconds)]);
  registerCalibration(family);
  registerEvaluation(family);
}

const INTERVAL_ENDS = [
  ["expected", "Mean over the replicas of the simulated mean"],
  ["low", "Lower end of the 90 % prediction interval of the mean"],
  ["high", "Upper end of the 90 % prediction interval of the mean"],
] as const;

type Family = (
  type: MetricFamily["type"],
  name: string,
  help: string,
  rows: (now: ShadowStatus) => MetricRow[],
) => void;

/** Candidates come from the configuration, so their number is bounded there. */
function registerEvaluation(family: Family): void {
  const row = (value: number, labels: Record<string, string> = {}): MetricRow => labelled(value, labels);
  family(
    "gauge",
    "model_error_ratio",
    "Simulated over observed mean of the profile in force, less one.",
    ({ evaluation }) => Object.entries(evaluation?.modelError ?? {}).map(([metric, value]) => row(value, { metric })),
  );
  family(
    "gauge",
    "replicas",
    "Simulations of each profile behind the intervals of the latest evaluation; 0 where it has none.",
    ({ evaluation }) => (evaluation === undefined ? [] : [row(evaluation.replicas)]),
  );
  for (const [end, what] of INTERVAL_ENDS)
    family("gauge", `predicted_mean_${end}_seconds`, `${what} under a profile.`, ({ evaluation }) =>
      perCandidate(
        evaluation,
        (one) => one.intervalSeconds,
        ({ mean }) => mean[end],
      ).map(([value, labels]) => row(value, labels)),
    );
  family("gauge", "predicted_mean_seconds", "Simulated mean under a profile.", ({ evaluation }) =>
    perCandidate(
      evaluation,
      (one) => one.predictedSeconds,
      (value) => value,
    ).map(([value, labels]) => row(value, labels)),
  );
  family(
    "gauge",
    "predicted_difference_seconds",
    "Simulated mean under a profile less that of the one in force.",
    ({ evaluation }) =>
      perCandidate(
        evaluation,
        (one) => one.differenceSeconds,
        ({ mean }) => mean,
      ).map(([value, labels]) => row(value, labels)),
  );
  family(
    "gauge",
    "predicted_difference_exceeds_noise",
    "Whether that difference is more than chance, over requests and over engines as they may be.",
    ({ evaluation }) =>
      perCandidate(
        evaluation,
        (one) => one.differenceSeconds,
        ({ exceedsNoise }) => Number(exceedsNoise),
      ).map(([value, labels]) => row(value, labels)),
  );
}

/** Labels are names of outcomes, coefficients and metrics: few, and none comes from traffic. */
function registerCalibration(family: Family): void {
  family("counter", "fits_total", "Fits of the engine model, by what came of them.", ({ calibration }) =>
    Object.entries(calibration.fits).map(([outcome, value]) => labelled(value, { outcome })),
  );
  family("gauge", "fit_age_seconds", "Since the fit in use was accepted; absent before the first.", ({ calibration }) =>
    calibration.fitAgeSeconds === undefined ? [] : [labelled(calibration.fitAgeSeconds, {})],
  );
  family("gauge", "engine_coefficient_seconds", "Coefficients of the engine model in use.", ({ calibration }) =>
    Object.entries(calibration.coefficients).map(([name, micros]) =>
      labelled(micros / MICROS_PER_SECOND, { coefficient: name.replace(/Micros$/, "") }),
    ),
  );
  const error = (of: "mean" | "mape") => (now: ShadowStatus) =>
    Object.entries(now.calibration.heldOut).map(([metric, one]) => labelled(one[of], { metric }));
  family(
    "gauge",
    "held_out_error_ratio",
    "Simulated over observed mean of the latest requests, which the engine model was not fitted to, less one.",
    error("mean"),
  );
  family(
    "gauge",
    "held_out_absolute_error_ratio",
    "Mean over the same requests of how far each is off, over what was observed.",
    error("mape"),
  );
}

function labelled(value: number, labels: Record<string, string>): MetricRow {
  return { value, labels: NO_LABELS, sharedLabels: labels };
}

type OneCandidate = ShadowEvaluation["candidates"][number];

function perCandidate<T>(
  evaluation: ShadowEvaluation | undefined,
  of: (one: OneCandidate) => Readonly<Record<string, T>>,
  value: (entry: T) => number,
): [number, Record<string, string>][] {
  return (evaluation?.candidates ?? []).flatMap((one) =>
    Object.entries(of(one)).map(([metric, entry]): [number, Record<string, string>] => [
      value(entry),
      { profile: one.name, metric },
    ]),
  );
}
