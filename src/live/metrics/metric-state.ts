import type { Registry } from "prom-client";
import type { EndpointRow } from "#core/fleet/endpoint-row.ts";
import type { Router } from "#core/router.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import type { FleetKeeper } from "../keeper/fleet-keeper.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { SourceBoard } from "../endpoints/source-board.ts";
import type { GatewayCounters } from "../base/gateway-counters.ts";
import {
  type Family,
  type LabelTexts,
  type MetricFamily,
  type MetricRow,
  type MetricRowOf,
  NO_LABELS,
  registerFamily,
} from "./metric-family.ts";
import { type KvEventSources, registerKvEvents } from "./metric-kv-events.ts";
import { type LogCounts, registerLogs } from "./metric-logs.ts";
import { type OrdersStatus, registerPolicy } from "./metric-policy.ts";
import { registerRollouts, type RolloutSources } from "./metric-rollout.ts";
import { registerShadow } from "./metric-shadow.ts";
import { registerShare } from "./metric-share.ts";
import { registerTap, type TapStatus } from "./metric-tap.ts";
import { registerTotals } from "./metric-totals.ts";
import type { PolicyAdmin } from "../admin/policy-admin.ts";
import type { RecorderStatus } from "../recorder/recorder.ts";
import type { SpanCounts } from "../tracing/request-spans.ts";
import type { ShareStatus } from "../share/share-status.ts";
import type { ShadowStatus } from "./shadow-status.ts";
import type { HangDetector } from "../keeper/hang-detector.ts";
import type { TokenizerDescription } from "../tokenizer/described-tokenizer.ts";
import type { ForecastAccuracy, ForecastCounts } from "./prediction-accuracy.ts";
import type { CheckCounts } from "../keeper/health-checker.ts";
import type { SourceRow } from "../endpoints/source-status.ts";
import { JUDGE_FAMILIES, type StageJudges } from "../stage-performers.ts";

/** What is counted or known elsewhere and only read for a page. */
export interface StateSources extends KvEventSources, ForecastSources, RolloutSources {
  readonly router: Router;
  readonly directory: EndpointDirectory;
  readonly keeper: Pick<FleetKeeper, "rows" | "targetsRefused" | "checkCounts" | "adapterLoads">;
  /** What endpoints are learned from; left out where they are only listed. */
  readonly sources?: Pick<SourceBoard, "rows">;
  /** Left out where nobody judges which endpoints hang. */
  readonly hangs?: Pick<HangDetector, "counts">;
  /** Undefined before there is a gateway. */
  readonly counters: () => GatewayCounters | undefined;
  /** Left out where there can be none. */
  readonly judges?: () => StageJudges | undefined;
  /** Undefined when nothing is recorded. */
  readonly recorder: () => RecorderStatus | undefined;
  /** Left out, or undefined, where there are no spans. */
  readonly spans?: () => SpanCounts | undefined;
  /** Left out where no policy can change. */
  readonly policy?: Pick<PolicyAdmin, "counts">;
  /** Left out where nothing survives a restart. */
  readonly orders?: (() => OrdersStatus) | undefined;
  /** What the tokenizers counted, one of the configuration each. */
  readonly tokenizers?: () => readonly TokenizerCounts[];
  /** Left out where there is no shadow. */
  readonly shadow?: () => ShadowStatus;
  /** Left out where nothing is shared with other gateways. */
  readonly share?: () => ShareStatus | undefined;
  /** Undefined where this gateway decides itself. */
  readonly observed?: (() => TapStatus) | undefined;
  /** Lines that the logs left out; left out where nothing logs. */
  readonly logs?: LogCounts;
  /** When certificates run out, in Unix seconds by section of the configuration. */
  readonly certificates?: ReadonlyMap<string, number>;
  /** Endpoints, and servers, with lines of their own; the first by id have them. */
  readonly endpointsMax?: number;
}

export interface TokenizerCounts extends Pick<TokenizerDescription, "name" | "counters"> {
  /** That it is for; "" for all that have none of their own. */
  readonly model: string;
}

export const ENDPOINTS_MAX_DEFAULT = 512;

export function registerState(registry: Registry, sources: StateSources): void {
  const shared = new SharedLabels();
  const row = (value: number, labels: LabelTexts = NO_LABELS): MetricRow => ({
    value,
    labels: NO_LABELS,
    sharedLabels: labels === NO_LABELS ? NO_LABELS : shared.of(labels),
  });
  const family = (type: MetricFamily["type"], name: string, help: string, rows: () => MetricRow[]) =>
    registerFamily(registry, { name: `gnomon_${name}`, help, type, rows });

  registerEndpoints(sources, family, row);
  registerScrapes(sources, family, row);
  registerSources(registry, sources.sources);
  registerShare(registry, sources.share);
  registerTotals(sources.counters, family, row);
  registerRecorder(sources.recorder, family, row);
  registerSpans(sources.spans, family, row);
  registerTokenizers(sources, family, row);
  registerPolicy(sources, family, row);
  registerAdmission(sources.router, sources.counters, family, row);
  registerJudges(sources.judges ?? (() => undefined), family, row);
  registerLogs(sources.logs, family, row);
  registerCertificates(sources.certificates, family, row);
  registerTap(sources.observed, family, row);
  registerKvEvents(sources, family, row);
  registerForecasts(sources, family, row);
  registerRollouts(registry, sources);
  if (sources.shadow !== undefined) registerShadow(registry, sources.shadow);
}

const STANDINGS = { well: 0, returning: 1, hung: 2 } as const;
const BREAKER_STATES = { closed: 0, "half-open": 1, open: 2 } as const;

/** Gauges of an endpoint; undefined where the value is not known, which leaves the line out. */
const ENDPOINT_GAUGES: readonly (readonly [
  name: string,
  help: string,
  of: (row: EndpointRow) => number | undefined,
])[] = [
  ["endpoint_requests_in_flight", "Requests sent there and not finished.", (row) => row.requestsInFlight],
  [
    "endpoint_effective_load",
    "Requests that occupy the endpoint, those of other clients included.",
    (row) => row.effectiveLoad,
  ],
  [
    "endpoint_prefill_tokens_queued",
    "Prompt tokens of requests there that have no first token yet.",
    (row) => row.prefillTokensQueued,
  ],
  [
    "endpoint_decode_tokens",
    "Context tokens of requests there that are past their first token.",
    (row) => row.decodeTokens,
  ],
  ["endpoint_kv_utilization", "Share of the endpoint's KV blocks in use, from 0 to 1.", (row) => row.kvUtilization],
  ["endpoint_requests_running", "Requests in the engine's batch, as last scraped.", (row) => row.load?.running],
  ["endpoint_requests_waiting", "Requests in the engine's queue, as last scraped.", (row) => row.load?.waiting],
  [
    "endpoint_prefix_hit_ratio",
    "Share of prompt tokens found in the engine's prefix cache, as last scraped.",
    (row) => row.load?.prefixHitRatio,
  ],
  [
    "endpoint_load_age_seconds",
    "Age of the endpoint's scraped signals.",
    (row) => (row.loadAgeMicros < 0 ? undefined : row.loadAgeMicros / MICROS_PER_SECOND),
  ],
  ["endpoint_index_blocks", "Blocks that the endpoint holds according to the prefix index.", (row) => row.indexBlocks],
  ["endpoint_breaker_state", "0 closed, 1 half-open, 2 open.", (row) => BREAKER_STATES[row.breaker]],
  ["endpoint_standing", "0 well, 1 returning, 2 hung.", (row) => STANDINGS[row.standing]],
  ["endpoint_prefix_precise", "1 while the prefix index follows the engine's KV events.", precise],
  ["endpoint_cordoned", "1 while the endpoint is cordoned: it gets no new requests.", (row) => (row.cordoned ? 1 : 0)],
  ["endpoint_asleep", "1 while the endpoint's engine sleeps.", (row) => (row.asleep ? 1 : 0)],
];

function precise({ knowledge }: EndpointRow): number {
  return knowledge.source === "precise" ? 1 : 0;
}

function registerEndpoints(sources: StateSources, family: Family, row: MetricRowOf): void {
  const { router, directory, endpointsMax = ENDPOINTS_MAX_DEFAULT } = sources;
  // All gauges of one page come from one look at the router.
  let rows: readonly EndpointRow[] = [];
  let unlisted = 0;
  family("gauge", "endpoints", "Endpoints by state.", () => {
    const all = router.endpointRows(nowMicros());
    rows = all.slice(0, endpointsMax);
    unlisted = all.length - rows.length;
    const counts = { waiting: 0, ready: 0, lost: 0 };
    for (const entry of directory.all()) counts[entry.state]++;
    return Object.entries(counts).map(([state, count]) => row(count, { state }));
  });
  family("gauge", "endpoints_unlisted", "Endpoints without series of their own on this page.", () => [row(unlisted)]);
  for (const [name, help, of] of ENDPOINT_GAUGES) {
    family("gauge", name, help, () =>
      rows.flatMap((endpoint) => {
        const value = of(endpoint);
        return value === undefined ? [] : [row(value, { endpoint: endpoint.id })];
      }),
    );
  }
  registerEjections(
    () => rows,
    () => sources.keeper.checkCounts,
    family,
    row,
  );
  family(
    "counter",
    "endpoint_verdicts_total",
    "Endpoints judged to hang, endpoints readmitted, and standstills of the gateway itself, which speak against none.",
    () =>
      sources.hangs === undefined
        ? []
        : Object.entries(sources.hangs.counts).map(([verdict, count]) => row(count, { verdict })),
  );
  family("gauge", "requests_in_flight", "Requests in flight, as the router knows them.", () => [row(router.inFlight)]);
  family("gauge", "open_charges", "Requests charged to an endpoint.", () => [row(router.openCharges)]);
  family("counter", "stray_inputs_total", "Inputs naming requests that are not in flight.", () => [
    row(router.strayInputs),
  ]);
}

function registerScrapes(sources: StateSources, family: Family, row: MetricRowOf): void {
  const { keeper, endpointsMax = ENDPOINTS_MAX_DEFAULT } = sources;
  const rows = () => keeper.rows().slice(0, endpointsMax);
  family("counter", "scrapes_total", "Scrapes of endpoints' metrics pages.", () =>
    rows().map(({ url, counts }) => row(counts.scrapes, { url })),
  );
  family("counter", "scrape_errors_total", "Failed scrapes.", () =>
    rows().flatMap(({ url, counts }) =>
      Object.entries(counts.errors).flatMap(([fault, count]) => (count === 0 ? [] : [row(count, { url, fault })])),
    ),
  );
  family("counter", "scrapes_skipped_total", "Scrapes skipped because the one before was still under way.", () =>
    rows().map(({ url, counts }) => row(counts.skipped, { url })),
  );
  family("counter", "scrape_malformed_lines_total", "Lines of scraped metrics that could not be parsed.", () =>
    rows().map(({ url, counts }) => row(counts.malformedLines, { url })),
  );
  family("gauge", "scrape_age_seconds", "Time since the last successful scrape.", () =>
    rows().flatMap(({ url, ageMicros }) => (ageMicros < 0 ? [] : [row(ageMicros / MICROS_PER_SECOND, { url })])),
  );
  family(
    "counter",
    "targets_refused_total",
    "Endpoints that were refused: named twice, or more than the limit.",
    () => [row(keeper.targetsRefused)],
  );
  family(
    "counter",
    "adapter_loads_total",
    "Adapters loaded through the gateway that endpoints got as they joined: loaded, failed; or forgotten, being too many.",
    () => Object.entries(keeper.adapterLoads).map(([outcome, count]) => row(count, { outcome })),
  );
}

/** `contradicted` beside `confirmed` shows that a tokenizer is not the engines': exact prompts, by the engines' count. */
function registerTokenizers({ tokenizers }: StateSources, family: Family, row: MetricRowOf): void {
  family(
    "counter",
    "tokenizer_events_total",
    "What tokenizers did, and whether their counts agreed with the engines'.",
    () =>
      (tokenizers?.() ?? []).flatMap(({ model, name, counters }) =>
        Object.entries(counters).map(([event, count]) => row(count, { for: model, tokenizer: name, event })),
      ),
  );
}

/** Label objects that stay the same between pages; forgotten when there are too many. */
class SharedLabels {
  readonly #known = new Map<string, LabelTexts>();

  of(labels: LabelTexts): LabelTexts {
    const key = JSON.stringify(labels);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#known.size >= SHARED_LABELS_MAX) this.#known.clear();
    this.#known.set(key, labels);
    return labels;
  }
}

const SHARED_LABELS_MAX = 20_000;

/** Who waits, and whom limits refuse. Classes and limits are those of the policy. */
function registerAdmission(
  router: Router,
  counters: () => Pick<GatewayCounters, "queued" | "limited"> | undefined,
  family: Family,
  row: MetricRowOf,
): void {
  family("gauge", "queue_requests", "Requests waiting in the gateway's queue, by the score of their class.", () =>
    [...router.admission.waitingByBand()].map(([band, count]) => row(count, { class: String(band) })),
  );
  family("counter", "queued_total", "Requests that were queued, by reason.", () =>
    Object.entries(counters()?.queued ?? {}).map(([reason, count]) => row(count, { reason })),
  );
  family("counter", "limited_total", "Requests refused by a limit, by the limit's name.", () =>
    Object.entries(counters()?.limited ?? {}).map(([limit, count]) => row(count, { limit })),
  );
}

/** What became of answers that are judged; nothing where none are. */
function registerJudges(judges: () => StageJudges | undefined, family: Family, row: MetricRowOf): void {
  for (const { type, name, help, rows } of JUDGE_FAMILIES) {
    family(type, name, help, () => {
      const shared = judges();
      return shared === undefined ? [] : rows(shared).map(({ value, labels }) => row(value, labels));
    });
  }
}

interface ForecastSources {
  /** Left out where nobody compares. */
  readonly forecasts?: Pick<ForecastAccuracy, "rows">;
}

const COUNTS: readonly (readonly [name: string, help: string, of: (counts: Readonly<ForecastCounts>) => number])[] = [
  ["requests_total", "Requests with both a forecast and a measured time.", ({ requests }) => requests],
  ["seconds_total", "Sum of the forecast times.", ({ forecastMicros }) => forecastMicros / MICROS_PER_SECOND],
  ["measured_seconds_total", "Sum of the measured times.", ({ measuredMicros }) => measuredMicros / MICROS_PER_SECOND],
  [
    "error_seconds_total",
    "Sum of the absolute errors of the forecasts.",
    ({ errorMicros }) => errorMicros / MICROS_PER_SECOND,
  ],
  [
    "error_ratio_total",
    "Sum of the absolute errors, each relative to the measured time.",
    ({ errorShares }) => errorShares,
  ],
];

/** How right the router's forecasts of TTFT and TPOT are: over the requests, errors and ratios are means. */
function registerForecasts({ forecasts }: ForecastSources, family: Family, row: MetricRowOf): void {
  for (const [name, help, of] of COUNTS) {
    family("counter", `endpoint_forecast_${name}`, `${help} By figure: ttft or tpot.`, () =>
      (forecasts?.rows() ?? []).flatMap(({ endpoint, figure, counts }) =>
        counts.requests === 0 ? [] : [row(of(counts), { endpoint, figure })],
      ),
    );
  }
}

const EJECTED = { "": 0, unhealthy: 1, failures: 2, slow: 3 } as const;

/** Which endpoints are left alone, or get less than their share, and why. `rows` are those of the page under way. */
function registerEjections(
  rows: () => readonly EndpointRow[],
  checks: () => Readonly<CheckCounts> | undefined,
  family: Family,
  row: MetricRowOf,
): void {
  const why = "0 not ejected, 1 its health checks fail, 2 its requests fail, 3 its tokens are slow.";
  family("gauge", "endpoint_ejected", why, () =>
    rows().map(({ id, ejected }) => row(EJECTED[ejected], { endpoint: id })),
  );
  family(
    "gauge",
    "endpoint_share",
    "Share of its usual requests that the endpoint gets; below 1 during slow start.",
    () => rows().map(({ id, share }) => row(share, { endpoint: id })),
  );
  family("counter", "endpoint_ejections_total", "Endpoints ejected because they did worse than the others.", () =>
    rows().flatMap(({ id, ejections }) =>
      Object.entries(ejections)
        .filter(([, count]) => count > 0)
        .map(([reason, count]) => row(count, { endpoint: id, reason })),
    ),
  );
  family(
    "counter",
    "health_checks_total",
    "Active health checks by result, and the changes of verdict that followed.",
    () => Object.entries(checks() ?? {}).map(([result, count]) => row(count, { result })),
  );
}

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
function registerSources(registry: Registry, sources: Pick<SourceBoard, "rows"> | undefined): void {
  for (const [type, name, help, of] of FIGURES) {
    const rows = () =>
      (sources?.rows() ?? []).flatMap((row) => {
        const value = of(row);
        return value === undefined ? [] : [{ value, labels: { source: row.source }, sharedLabels: NO_LABELS }];
      });
    registerFamily(registry, { name: `gnomon_${name}`, help, type, rows });
  }
}

/** Spans; undefined when none are made. */
function registerSpans(spans: StateSources["spans"], family: Family, row: MetricRowOf): void {
  const figures: readonly StatusFigure<SpanCounts>[] = [
    ["counter", "spans_sent_total", "Spans that the collector took.", (counts) => counts.sent],
    ["counter", "spans_failed_total", "Spans lost because their batch could not be sent.", (counts) => counts.failed],
  ];
  registerFigures(() => spans?.(), figures, family, row);
}

/** The trace's recorder; undefined when nothing is recorded. */
function registerRecorder(recorder: () => RecorderStatus | undefined, family: Family, row: MetricRowOf): void {
  const figures: readonly StatusFigure<RecorderStatus>[] = [
    ["counter", "recorder_records_total", "Trace records written.", (status) => status.recorded],
    ["counter", "recorder_dropped_total", "Trace records lost to a full buffer or disk.", (status) => status.dropped],
    [
      "gauge",
      "recorder_buffered_bytes",
      "Trace records waiting in memory to be written.",
      (status) => status.bufferedBytes,
    ],
    ["counter", "recorder_written_bytes_total", "Compressed bytes written.", (status) => status.writtenBytes],
    [
      "counter",
      "recorder_removed_segments_total",
      "Trace segments removed because of age or total size.",
      (status) => status.removedSegments,
    ],
    [
      "counter",
      "recorder_removed_bytes_total",
      "Compressed bytes of the trace segments removed.",
      (status) => status.removedBytes,
    ],
    [
      "counter",
      "recorder_encode_seconds_total",
      "Event loop time spent on encoding trace records.",
      (status) => status.encodeMicros / MICROS_PER_SECOND,
    ],
  ];
  registerFigures(recorder, figures, family, row);
}

function registerCertificates(certificates: StateSources["certificates"], family: Family, row: MetricRowOf): void {
  if (certificates === undefined) return;
  family(
    "gauge",
    "certificate_expiry_timestamp_seconds",
    "When the certificate of a section of the configuration runs out, in Unix time.",
    () => Array.from(certificates, ([section, seconds]) => row(seconds, { section })),
  );
}

type StatusFigure<T> = readonly [type: MetricFamily["type"], name: string, help: string, of: (source: T) => number];

/** A family for each figure, without a row while there is no source. */
function registerFigures<T>(
  source: () => T | undefined,
  figures: readonly StatusFigure<T>[],
  family: Family,
  row: MetricRowOf,
): void {
  for (const [type, name, help, of] of figures) {
    family(type, name, help, () => {
      const found = source();
      return found === undefined ? [] : [row(of(found))];
    });
  }
}
