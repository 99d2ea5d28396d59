import { STAGE_COUNTS } from "#core/stages.ts";
import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { Family, MetricRowOf } from "./metric-family.ts";

type CountersOf<T> = { [K in keyof GatewayCounters]: GatewayCounters[K] extends T ? K : never }[keyof GatewayCounters];
type Total = CountersOf<number>;
type Labelled = CountersOf<Readonly<Record<string, number>>>;

const TOTALS: readonly (readonly [counter: Total, name: string, help: string])[] = [
  ["reconnects", "reconnects_total", "Requests sent again because a kept-alive connection had closed."],
  ["cuts", "cut_answers_total", "Answers that broke after the client had received bytes, and were not continued."],
  [
    "transfersReleased",
    "transfers_released_total",
    "Transfers that were never fetched and whose blocks the prefill engine was asked to free.",
  ],
  [
    "transfersStranded",
    "transfers_stranded_total",
    "Transfers that were never fetched and whose blocks are held until the engine's own timeout.",
  ],
  ["clientAborts", "client_aborts_total", "Requests whose client disconnected."],
  ["clientStalls", "client_stalls_total", "Clients disconnected because they did not read."],
  ["handshakesFailed", "tls_handshakes_failed_total", "Client connections whose TLS handshake failed."],
  ["timeouts", "timeouts_total", "Requests that exceeded a time limit."],
  ["administrationCalls", "administration_calls_total", "Administrative calls that were sent to all engines."],
  [
    "responsePlacesForgotten",
    "response_places_forgotten_total",
    "Stored responses whose engine was forgotten because too many are remembered.",
  ],
  ["connectionsDropped", "connections_dropped_total", "Connections refused because there were too many."],
  ["unreadCut", "unread_cut_total", "Connections cut because answers on them, and too many in all, were not read."],
  ["pipelinesCut", "pipelines_cut_total", "Connections cut because too many requests waited on them for their turn."],
  ["malformedHttp", "malformed_http_total", "Requests that were not HTTP."],
  [
    "uninspected",
    "uninspected_total",
    "Events or answers that were forwarded without being read because they were too large.",
  ],
  ["answerTokensDropped", "answer_tokens_dropped_total", "Token ids of answers beyond answerTokensKept."],
  ["progressInputs", "progress_inputs_total", "Progress inputs given to the router."],
  ["pickerStreams", "picker_streams_total", "Requests for which a proxy asked this gateway for an endpoint."],
  ["pickerMoved", "picker_moved_total", "Requests that a proxy sent to another endpoint than the chosen one."],
  ["pickerRepeated", "picker_repeated_total", "Request bodies that a proxy sent again after their last piece."],
  [
    "pickerRenewed",
    "picker_connections_renewed_total",
    "Connections that proxies were asked to make anew, at picker.connectionAgeMillisMax.",
  ],
  ["internalErrors", "internal_errors_total", "Defects caught at the edge of a request."],
  ...STAGE_COUNTS.flatMap(([key, { label, metric, meaning }]) =>
    label === undefined ? [[key as Total, metric, meaning] as const] : [],
  ),
];

/** Counters with a label, which is the key of their record. */
const BY_LABEL: readonly (readonly [counter: Labelled, label: string, name: string, help: string])[] = [
  ["refused", "reason", "refusals_total", "Requests that the gateway answered with an error itself."],
  [
    "passedUnread",
    "reason",
    "passed_unread_total",
    "Requests that went on to another router though they could not be read, by reason.",
  ],
  [
    "stripped",
    "name",
    "stripped_total",
    "Engines' own fields and headers that clients sent and that were removed, by name.",
  ],
  [
    "outOfFiles",
    "of",
    "out_of_files_total",
    "Connections refused or not opened because no file descriptor was left, by whose they were.",
  ],
  [
    "bodiesCut",
    "reason",
    "bodies_cut_total",
    "Requests whose body came too slowly: below the least rate (slow), or until its room was needed (gave-way).",
  ],
  ["deadlines", "state", "deadlines_passed_total", "Requests whose client's deadline passed."],
  ["moved", "from", "requests_moved_total", "Requests moved to another endpoint before their first byte, by reason."],
  ...STAGE_COUNTS.flatMap(([key, { label, metric, meaning }]) =>
    label === undefined ? [] : [[key as Labelled, label, metric, meaning] as const],
  ),
  [
    "responsesFollowed",
    "place",
    "responses_followed_total",
    "Requests with a previous_response_id, by where that is: noted, found by asking the engines, gone with its engine, unknown.",
  ],
  [
    "servingChecks",
    "engine",
    "serving_checks_total",
    "Questions to engines whether they still serve, since the end of an answer of /v1/responses does not show whether it was aborted: serves, or ends.",
  ],
  [
    "knownBodies",
    "event",
    "known_bodies_total",
    "Long chats and beginnings of chats kept so that they need not be tokenized again.",
  ],
  ["answersKnown", "from", "answers_indexed_total", "Answers put into the prefix index."],
  ["answersUnknown", "reason", "answers_unknown_total", "Answers whose tokens could not be determined."],
  [
    "pickerFailures",
    "reason",
    "picker_failures_total",
    "Calls on the picker's ports that ended with an error of gRPC's, and connections that brought none, by reason.",
  ],
  [
    "retriesDenied",
    "reason",
    "retries_denied_total",
    "Failed attempts that no other followed, by reason: the retry budget was spent (budget), the request had all its attempts (attempts), its time was over (time), no other endpoint could take it (no-endpoint).",
  ],
  ["faults", "fault", "attempt_faults_total", "Attempts that failed before the client got a byte."],
];

/** What the gateway counted since its start; undefined before there is a gateway. */
export function registerTotals(counters: () => GatewayCounters | undefined, family: Family, row: MetricRowOf): void {
  for (const [counter, name, help] of TOTALS) {
    family("counter", name, help, () => {
      const all = counters();
      return all === undefined ? [] : [row(all[counter])];
    });
  }
  for (const [counter, label, name, help] of BY_LABEL) {
    family("counter", name, help, () =>
      Object.entries(counters()?.[counter] ?? {}).map(([value, count]) => row(count, { [label]: value })),
    );
  }
}
