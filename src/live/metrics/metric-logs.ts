import type { MetricFamily, MetricRow } from "./metric-family.ts";

type Row = (value: number, labels?: Readonly<Record<string, string>>) => MetricRow;
type Family = (type: MetricFamily["type"], name: string, help: string, rows: () => MetricRow[]) => void;

export interface LogCounts {
  /** Faults that were only counted, by kind. */
  readonly withheld: () => Readonly<Record<string, number>>;
  /** Lines of the log that were dropped. */
  readonly dropped: () => number;
  /** Lines of the access log that were dropped. */
  readonly accessDropped: () => number;
}

/** Lines that the logs left out; no families where nothing logs. */
export function registerLogs(logs: LogCounts | undefined, family: Family, row: Row): void {
  if (logs === undefined) return;
  family(
    "counter",
    "log_lines_withheld_total",
    "Fault log lines above the rate limit, which a summary line counts instead.",
    () => Object.entries(logs.withheld()).map(([event, count]) => row(count, { event })),
  );
  family(
    "counter",
    "log_lines_dropped_total",
    "Log lines dropped because they could not be written, as on a full disk.",
    () => [row(logs.dropped())],
  );
  family(
    "counter",
    "access_log_lines_dropped_total",
    "Access log lines dropped because they were not read in time.",
    () => [row(logs.accessDropped())],
  );
}
