/** What is asked of a request: time to the first token, time per token after it, time to the last one. */
export const METRICS = ["ttftMicros", "tpotMicros", "e2eMicros"] as const;
export type Metric = (typeof METRICS)[number];
export type PerMetric<T> = Readonly<Record<Metric, T>>;

export function perMetric<T>(make: (metric: Metric) => T): PerMetric<T> {
  return { ttftMicros: make("ttftMicros"), tpotMicros: make("tpotMicros"), e2eMicros: make("e2eMicros") };
}
