const METRIC_NAMES = { ttftMicros: "ttft", tpotMicros: "tpot", e2eMicros: "e2e" } as const;

/** Metrics that have a value, by their short names. */
export function byMetricName<T, R>(
  values: Readonly<Record<keyof typeof METRIC_NAMES, T | undefined>> | undefined,
  of: (value: T) => R,
): Record<string, R> {
  const named: Record<string, R> = {};
  for (const [metric, name] of Object.entries(METRIC_NAMES)) {
    const value = values?.[metric as keyof typeof METRIC_NAMES];
    if (value !== undefined) named[name] = of(value);
  }
  return named;
}
