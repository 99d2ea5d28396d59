import type { Registry } from "prom-client";
import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import type { ApartReason, ShareStatus } from "../share/share-status.ts";
import { type MetricFamily, type MetricRow, NO_LABELS, registerFamily } from "./metric-family.ts";

const APART_REASONS = ["version", "settings", "name"] as const satisfies readonly ApartReason[];

type Figure = readonly [
  type: MetricFamily["type"],
  name: string,
  help: string,
  of: (status: ShareStatus) => readonly (readonly [value: number, labels?: Readonly<Record<string, string>>])[],
];

const FIGURES: readonly Figure[] = [
  [
    "gauge",
    "up",
    "1 while this gateway shares state with others; 0: it routes by its own view.",
    ({ state }) => [[state === "shared" ? 1 : 0]],
  ],
  ["gauge", "peers", "Other gateways known to this one.", ({ peers }) => [[peers.length]]],
  [
    "gauge",
    "peer_requests_in_flight",
    "Requests in flight that other gateways reported.",
    ({ peers }) => [[peers.reduce((sum, { requestsInFlight }) => sum + requestsInFlight, 0)]],
  ],
  [
    "gauge",
    "lag_seconds",
    "Time until this gateway reads its own report back, which is how old its state is when others see it.",
    ({ lagMillis }) =>
      lagMillis === undefined
        ? []
        : [
            [lagMillis.p50 / MILLIS_PER_SECOND, { quantile: "0.5" }],
            [lagMillis.p99 / MILLIS_PER_SECOND, { quantile: "0.99" }],
          ],
  ],
  ["counter", "requests_total", "Requests reported to other gateways.", ({ counts }) => [[counts.requestsSent]]],
  [
    "counter",
    "reports_total",
    "Reports, by direction; those received include this gateway's own.",
    ({ counts }) => [
      [counts.reportsSent, { direction: "sent" }],
      [counts.reportsReceived, { direction: "received" }],
    ],
  ],
  [
    "counter",
    "bytes_total",
    "Size of the reports.",
    ({ counts }) => [
      [counts.bytesSent, { direction: "sent" }],
      [counts.bytesReceived, { direction: "received" }],
    ],
  ],
  [
    "counter",
    "blocks_total",
    "Blocks of prompts reported: written, or known from earlier reports.",
    ({ blocksWritten, blocksKnown }) => [
      [blocksWritten, { kind: "written" }],
      [blocksKnown, { kind: "known" }],
    ],
  ],
  ["counter", "losses_total", "Times the connection to Redis was lost.", ({ counts }) => [[counts.losses]]],
  [
    "counter",
    "leases_ended_total",
    "Gateways that stopped reporting and were forgotten.",
    ({ counts }) => [[counts.leasesEnded]],
  ],
  [
    "gauge",
    "apart",
    "Gateways that cannot share with this one: another version (version), another key, hash or tokenizer (settings), or the same name (name).",
    ({ apart }) => APART_REASONS.map((reason) => [apart.filter((row) => row.reason === reason).length, { reason }]),
  ],
  [
    "gauge",
    "limits_kept_windows",
    "Windows of used limits that this gateway last saved, for gateways that start when none is running; one gateway saves them.",
    ({ limits }) => (limits?.written === undefined ? [] : [[limits.written.windows]]),
  ],
  [
    "gauge",
    "limits_kept_age_seconds",
    "Time since this gateway last saved them.",
    ({ limits }) => (limits?.written === undefined ? [] : [[limits.written.millisAgo / MILLIS_PER_SECOND]]),
  ],
  [
    "gauge",
    "limits_taken_over_windows",
    "Windows of used limits that this gateway found when it started.",
    ({ limits }) => (limits === undefined ? [] : [[limits.takenOver]]),
  ],
  [
    "counter",
    "left_out_total",
    "Reports that were not sent, not read or not accepted, by reason.",
    ({ counts, limits }) => [
      [counts.newsDropped, { reason: "link-away" }],
      [counts.requestsForgotten, { reason: "requests-forgotten" }],
      [counts.windowsLeftOut, { reason: "limit-windows" }],
      [counts.reportsUnreadable, { reason: "unreadable" }],
      [counts.reportsOtherVersion, { reason: "other-version" }],
      [counts.reportsForeign, { reason: "foreign" }],
      [limits?.writesFailed ?? 0, { reason: "limits-not-kept" }],
      [counts.chainsUnknown, { reason: "unknown-prefix" }],
      [counts.ignoredReports, { reason: "repeated" }],
      [counts.missedReports, { reason: "missed" }],
      [counts.refusedCharges, { reason: "refused-charge" }],
      [counts.strayNews, { reason: "stray" }],
      [counts.doubtedBreakers, { reason: "doubted-breaker" }],
    ],
  ],
];

/** What is shared with other gateways; without values where nothing is. */
export function registerShare(registry: Registry, status: (() => ShareStatus | undefined) | undefined): void {
  for (const [type, name, help, of] of FIGURES) {
    const rows = (): MetricRow[] => {
      const now = status?.();
      if (now === undefined) return [];
      return of(now).map(([value, labels = NO_LABELS]) => ({ value, labels: NO_LABELS, sharedLabels: labels }));
    };
    registerFamily(registry, { name: `gnomon_share_${name}`, help, type, rows });
  }
}
