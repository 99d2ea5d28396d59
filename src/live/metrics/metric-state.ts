import type { Registry } from "prom-client";
import type { EndpointRow } from "#core/endpoint-row.ts";
import type { Router } from "#core/router.ts";
import { MICROS_PER_SECOND } from "#core/units.ts";
import { nowMicros } from "../clock.ts";
import type { Cascades } from "../cascade/cascades.ts";
import type { FleetKeeper } from "../discovery/fleet-keeper.ts";
import type { EndpointDirectory } from "../discovery/endpoint-directory.ts";
import type { SourceBoard } from "../discovery/source-board.ts";
import type { GatewayCounters } from "./gateway-counters.ts";
import { registerCascades } from "./metric-cascade.ts";
import { type ForecastSources, registerForecasts } from "./metric-forecast.ts";
import { type MetricFamily, type MetricRow, NO_LABELS, registerFamily } from "./metric-family.ts";
import { type KvEventSources, registerKvEvents } from "./metric-kv-events.ts";
import { registerEjections } from "./metric-ejections.ts";
import { registerAdmission } from "./metric-admission.ts";
import { type LogCounts, registerLogs } from "./metric-logs.ts";
import { registerPolicy } from "./metric-policy.ts";
import { registerRollouts, type RolloutSources } from "./metric-rollout.ts";
import { registerShadow } from "./metric-shadow.ts";
import { registerShare } from "./metric-share.ts";
import { type LabelTexts, SharedLabels } from "./shared-labels.ts";
import { registerSources } from "./metric-sources.ts";
import { registerWorkers, type WorkerSources } from "./metric-workers.ts";
import type { PolicyDesk } from "../policy/policy-desk.ts";
import type { RecorderStatus } from "../recorder/recorder.ts";
import type { ShareStatus } from "../share/share-status.ts";
import type { ShadowStatus } from "../status/shadow-status.ts";
import type { HangWatch } from "../upstream/hang-watch.ts";
import type { TokenizerDescription } from "../tokenizer/described-tokenizer.ts";

/** What is counted or known elsewhere and only read for a page. */
export interface StateSources extends KvEventSources, ForecastSources, RolloutSources, WorkerSources {
  readonly router: Router;
  readonly directory: EndpointDirectory;
  readonly keeper: Pick<FleetKeeper, "rows" | "targetsRefused" | "checkCounts">;
  /** What endpoints are learned from; left out where they are only listed. */
  readonly sources?: Pick<SourceBoard, "rows">;
  /** Left out where nobody judges which endpoints hang. */
  readonly hangs?: Pick<HangWatch, "counts">;
  /** Undefined before there is a gateway. */
  readonly counters: () => GatewayCounters | undefined;
  /** Left out where there can be none. */
  readonly cascades?: () => Cascades | undefined;
  /** Undefined when nothing is recorded. */
  readonly recorder: () => RecorderStatus | undefined;
  /** Left out where no policy can change. */
  readonly policy?: Pick<PolicyDesk, "counts">;
  /** What the tokenizers counted, one of the configuration each. */
  readonly tokenizers?: () => readonly TokenizerCounts[];
  /** Left out where there is no shadow. */
  readonly shadow?: () => ShadowStatus;
  /** Left out where nothing is shared with other gateways. */
  readonly share?: () => ShareStatus | undefined;
  /** Lines that the logs left out; left out where nothing logs. */
  readonly logs?: LogCounts;
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
  registerCounters(sources, family, row);
  registerRecorder(sources, family, row);
  registerTokenizers(sources, family, row);
  registerPolicy(sources, family, row);
  registerAdmission(sources.router, sources.counters, family, row);
  registerCascades(sources.cascades ?? (() => undefined), family, row);
  registerLogs(sources.logs, family, row);
  registerWorkers(sources, family, row);
  registerKvEvents(sources, family, row);
  registerForecasts(sources, family, row);
  registerRollouts(registry, sources);
  if (sources.shadow !== undefined) registerShadow(registry, sources.shadow);
}

export type Row = (value: number, labels?: LabelTexts) => MetricRow;
export type Family = (type: MetricFamily["type"], name: string, help: string, rows: () => MetricRow[]) => void;

const STANDINGS = { well: 0, returning: 1, hung: 2 } as const;
const BREAKER_STATES = { closed: 0, "half-open": 1, open: 2 } as const;

/** Gauges of an endpoint; undefined where the value is not known, which leaves the line out. */
const ENDPOINT_GAUGES: readonly (readonly [
  name: string,
  help: string,
  of: (row: EndpointRow) => number | undefined,
])[] = [
  ["endpoint_requests_in_flight", "Requests sent there and not finished.", (row) => row.requestsInFlight],
  ["endpoint_effective_load", "Requests that occupy it, those of others included.", (row) => row.effectiveLoad],
  [
    "endpoint_prefill_tokens_queued",
    "Prompt tokens sent there before a first token.",
    (row) => row.prefillTokensQueued,
  ],
  ["endpoint_decode_tokens", "Tokens of requests past their first token.", (row) => row.decodeTokens],
  ["endpoint_kv_utilization", "Share of its KV blocks in use.", (row) => row.kvUtilization],
  ["endpoint_requests_running", "Requests in its batch, as last scraped.", (row) => row.load?.running],
  ["endpoint_requests_waiting", "Requests in its queue, as last scraped.", (row) => row.load?.waiting],
  [
    "endpoint_prefix_hit_ratio",
    "Share of prompt tokens that its cache had, as last scraped.",
    (row) => row.load?.prefixHitRatio,
  ],
  [
    "endpoint_load_age_seconds",
    "Age of its scraped signals.",
    (row) => (row.loadAgeMicros < 0 ? undefined : row.loadAgeMicros / MICROS_PER_SECOND),
  ],
  ["endpoint_index_blocks", "Blocks that the prefix index believes it to hold.", (row) => row.indexBlocks],
  ["endpoint_breaker_state", "0 closed, 1 half-open, 2 open.", (row) => BREAKER_STATES[row.breaker]],
  ["endpoint_standing", "0 well, 1 returning, 2 hung.", (row) => STANDINGS[row.standing]],
  ["endpoint_prefix_precise", "1 when what it holds is known by its events.", precise],
  ["endpoint_cordoned", "1 when it takes no new requests.", (row) => (row.cordoned ? 1 : 0)],
  ["endpoint_asleep", "1 when its engine sleeps.", (row) => (row.asleep ? 1 : 0)],
];

function precise({ knowledge }: EndpointRow): number {
  return knowledge.source === "precise" ? 1 : 0;
}

function registerEndpoints(sources: StateSources, family: Family, row: Row): void {
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
  family("gauge", "endpoints_unlisted", "Endpoints without lines of their own here.", () => [row(unlisted)]);
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
  family("counter", "endpoint_verdicts_total", "Endpoints that were judged to hang, and let back.", () =>
    sources.hangs === undefined
      ? []
      : Object.entries(sources.hangs.counts).map(([verdict, count]) => row(count, { verdict })),
  );
  family("gauge", "requests_in_flight", "Requests that the router knows.", () => [row(router.inFlight)]);
  family("gauge", "open_charges", "Requests charged to an endpoint.", () => [row(router.openCharges)]);
  family("counter", "stray_inputs_total", "Inputs naming requests that are not in flight.", () => [
    row(router.strayInputs),
  ]);
}

function registerScrapes(sources: StateSources, family: Family, row: Row): void {
  const { keeper, endpointsMax = ENDPOINTS_MAX_DEFAULT } = sources;
  const rows = () => keeper.rows().slice(0, endpointsMax);
  family("counter", "scrapes_total", "Metrics pages asked for.", () =>
    rows().map(({ url, counts }) => row(counts.scrapes, { url })),
  );
  family("counter", "scrape_errors_total", "Failed scrapes.", () =>
    rows().flatMap(({ url, counts }) =>
      Object.entries(counts.errors).flatMap(([fault, count]) => (count === 0 ? [] : [row(count, { url, fault })])),
    ),
  );
  family("counter", "scrapes_skipped_total", "Turns that passed while a scrape was under way.", () =>
    rows().map(({ url, counts }) => row(counts.skipped, { url })),
  );
  family("counter", "scrape_malformed_lines_total", "Wanted lines that could not be read.", () =>
    rows().map(({ url, counts }) => row(counts.malformedLines, { url })),
  );
  family("gauge", "scrape_age_seconds", "Since the last metrics page that was read.", () =>
    rows().flatMap(({ url, ageMicros }) => (ageMicros < 0 ? [] : [row(ageMicros / MICROS_PER_SECOND, { url })])),
  );
  family("counter", "targets_refused_total", "Endpoints not taken: named twice, or too many.", () => [
    row(keeper.targetsRefused),
  ]);
}

type Total = { [K in keyof GatewayCounters]: GatewayCounters[K] extends number ? K : never }[keyof GatewayCounters];

const TOTALS: readonly (readonly [counter: Total, name: string, help: string])[] = [
  ["retriesDenied", "retries_denied_total", "Retries that the budget did not allow."],
  ["reconnects", "reconnects_total", "Requests sent again since a kept connection had closed."],
  ["cuts", "cut_answers_total", "Answers that broke after the client got bytes, and did not go on."],
  ["continuationTokens", "continuation_tokens_total", "Tokens sent as prompts to endpoints where streams went on."],
  ["transfersReleased", "transfers_released_total", "Blocks that nobody fetched, freed at the engine that had them."],
  ["transfersStranded", "transfers_stranded_total", "The same, left to that engine's timeout."],
  ["clientAborts", "client_aborts_total", "Requests whose client left."],
  ["clientStalls", "client_stalls_total", "Clients cut off since they did not read."],
  ["handshakesFailed", "tls_handshakes_failed_total", "Connections of clients on which TLS came to nothing."],
  ["timeouts", "timeouts_total", "Requests whose limit ran out."],
  ["administrationCalls", "administration_calls_total", "Calls of engines' administration sent to all of them."],
  ["connectionsDropped", "connections_dropped_total", "Connections refused above the limit."],
  ["malformedHttp", "malformed_http_total", "Requests that were not HTTP."],
  ["uninspected", "uninspected_total", "Events or answers that passed unread above the limit."],
  ["answerTokensDropped", "answer_tokens_dropped_total", "Token ids of answers beyond answerTokensKept."],
  ["progressInputs", "progress_inputs_total", "Inputs about progress that reached the router."],
  ["pickerStreams", "picker_streams_total", "Requests that a proxy asked an endpoint for."],
  ["pickerMoved", "picker_moved_total", "Requests that a proxy took to another endpoint than the chosen one."],
  ["pickerRepeated", "picker_repeated_total", "Bodies that a proxy sent again after their last piece."],
  ["internalErrors", "internal_errors_total", "Defects caught at the edge of a request."],
];

function registerCounters({ counters }: StateSources, family: Family, row: Row): void {
  for (const [counter, name, help] of TOTALS) {
    family("counter", name, help, () => {
      const all = counters();
      return all === undefined ? [] : [row(all[counter])];
    });
  }
  const byKey = (name: string, help: string, label: string, of: (all: GatewayCounters) => Record<string, number>) =>
    family("counter", name, help, () => {
      const all = counters();
      return all === undefined ? [] : Object.entries(of(all)).map(([value, count]) => row(count, { [label]: value }));
    });
  byKey("refusals_total", "Requests that the gateway answered with an error itself.", "reason", (all) => all.refused);
  byKey("deadlines_passed_total", "Requests whose client's deadline passed.", "state", (all) => all.deadlines);
  byKey("streams_continued_total", "Streams that went on elsewhere, by fault.", "fault", (all) => all.continuations);
  byKey(
    "streams_continued_by_text_total",
    "Streams that went on elsewhere behind their text, as their engine sends no token ids: not sure to be exact; by fault.",
    "fault",
    (all) => all.continuationsByText,
  );
  byKey("streams_not_continued_total", "Streams cut, by why.", "reason", (all) => all.continuationsDenied);
  byKey("requests_moved_total", "Requests without a byte that left an endpoint, by why.", "from", (all) => all.moved);
  byKey("hedges_total", "Requests that a second endpoint had too, by their end.", "end", (all) => all.hedges);
  byKey("hedges_denied_total", "Late ones that none was given.", "reason", (all) => all.hedgesDenied);
  byKey("known_bodies_total", "Long chats and their beginnings that are kept.", "event", (all) => all.knownBodies);
  byKey("answers_indexed_total", "Answers put into the prefix index.", "from", (all) => all.answersKnown);
  byKey("answers_unknown_total", "Answers whose tokens were not found out.", "reason", (all) => all.answersUnknown);
  byKey("attempt_faults_total", "Attempts that failed before the client got a byte.", "fault", (all) => all.faults);
}

function registerRecorder({ recorder }: StateSources, family: Family, row: Row): void {
  const figures: readonly (readonly [MetricFamily["type"], string, string, (status: RecorderStatus) => number])[] = [
    ["counter", "recorder_records_total", "Trace records written.", (status) => status.recorded],
    ["counter", "recorder_dropped_total", "Trace records lost to a full buffer or disk.", (status) => status.dropped],
    ["gauge", "recorder_buffered_bytes", "Trace records that wait in memory.", (status) => status.bufferedBytes],
    ["counter", "recorder_written_bytes_total", "Compressed bytes written.", (status) => status.writtenBytes],
    [
      "counter",
      "recorder_removed_segments_total",
      "Segments removed as too old or too much.",
      (status) => status.removedSegments,
    ],
    ["counter", "recorder_removed_bytes_total", "Compressed bytes of those.", (status) => status.removedBytes],
    [
      "counter",
      "recorder_encode_seconds_total",
      "Event loop time spent on records.",
      (status) => status.encodeMicros / MICROS_PER_SECOND,
    ],
  ];
  for (const [type, name, help, of] of figures) {
    family(type, name, help, () => {
      const status = recorder();
      return status === undefined ? [] : [row(of(status))];
    });
  }
}

/** `contradicted` beside `confirmed` shows that a tokenizer is not the engines': exact prompts, by the engines' count. */
function registerTokenizers({ tokenizers }: StateSources, family: Family, row: Row): void {
  family("counter", "tokenizer_events_total", "What a tokenizer did, and how its counts met the engines'.", () =>
    (tokenizers?.() ?? []).flatMap(({ model, name, counters }) =>
      Object.entries(counters).map(([event, count]) => row(count, { for: model, tokenizer: name, event })),
    ),
  );
}
