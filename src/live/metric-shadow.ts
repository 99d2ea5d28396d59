import type { Registry } from "prom-client";
import { type MetricFamily, type MetricRow, NO_LABELS, registerFamily } from "./metric-family.ts";
import type { ShadowEvaluation, ShadowStatus } from "./shadow-status.ts";

const MILLIS_PER_SECOND = 1000;

/** The shadow's numbers. Its candidates come from the configuration, so their number is bounded there. */
export function registerShadow(registry: Registry, status: () => ShadowStatus): void {
  const row = (value: number, labels = NO_LABELS): MetricRow => ({ value, labels: NO_LABELS, sharedLabels: labels });
  const family = (type: MetricFamily["type"], name: string, help: string, rows: (now: ShadowStatus) => MetricRow[]) =>
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
  family(
    "gauge",
    "model_error_ratio",
    "Simulated over observed mean of the profile in force, less one.",
    ({ evaluation }) => Object.entries(evaluation?.modelError ?? {}).map(([metric, value]) => row(value, { metric })),
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
