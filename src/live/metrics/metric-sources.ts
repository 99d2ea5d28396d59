import type { Registry } from "prom-client";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { SourceBoard } from "../endpoints/source-board.ts";
import type { SourceRow } from "../endpoints/source-status.ts";
import { type MetricFamily, NO_LABELS, registerFamily } from "./metric-family.ts";

/** Name, help and value, undefined where it is not known, which leaves the line out. */
type Figure = readonly [
  type: MetricFamily["type"],
  name: string,
  help: string,
  of: (row: SourceRow) => number | undefined,
];

const FIGURES: readonly Figure[] = [
  ["gauge", "discovery_up", "1 while the source of endpoints can be read.", ({ up }) => (up ? 1 : 0)],
  [
    "gauge",
    "discovery_news_age_seconds",
    "Time since the source last sent anything; above 60 s something is wrong.",
    ({ newsAgeMicros: age }) => (age < 0 ? undefined : age / MICROS_PER_SECOND),
  ],
  ["counter", "discovery_failures_total", "Failed lists and watches.", ({ failures }) => failures],
  ["counter", "discovery_recoveries_total", "Times a source became readable again.", ({ recoveries }) => recoveries],
  [
    "counter",
    "discovery_lists_total",
    "Complete lists read; many of them mean that resource versions are lost.",
    ({ lists }) => lists,
  ],
  ["counter", "discovery_watches_total", "Watches opened.", ({ watches }) => watches],
  ["gauge", "discovery_targets", "Endpoints that a DNS or file source names.", ({ targets }) => targets],
];

/** How the sources of endpoints stand, a line each. */
export function registerSources(registry: Registry, sources: Pick<SourceBoard, "rows"> | undefined): void {
  for (const [type, name, help, of] of FIGURES) {
    const rows = () =>
      (sources?.rows() ?? []).flatMap((row) => {
        const value = of(row);
        return value === undefined ? [] : [{ value, labels: { source: row.source }, sharedLabels: NO_LABELS }];
      });
    registerFamily(registry, { name: `gnomon_${name}`, help, type, rows });
  }
}
