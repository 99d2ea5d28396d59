import { REQUEST_TOKENS_MAX, type Micros } from "#core/base/units.ts";
import type { TrafficRequest } from "../transform/traffic.ts";
import { LENGTHS_ONLY } from "../workload-request.ts";
import { ImportError, type ImportReport } from "./import-report.ts";
import { type JsonRecord, parseRecord, textField } from "./json-record.ts";
import { readLines } from "./line-reader.ts";
import { type SpanAttributes, attributesOf, spansOf } from "./otel-spans.ts";

/** Logs in which a line is a request and where a router sent it. */
export const ACCESS_LOGS = ["nginx", "envoy", "llm-d", "otel-spans"] as const;
export type RoutedLogKind = (typeof ACCESS_LOGS)[number];

/** What a log is worth. `endpoints` in order of their names. */
export interface RoutedLog {
  readonly endpoints: readonly string[];
  readonly startWallMicros: number;
  readonly requests: readonly TrafficRequest[];
}

/** One line's request. */
interface Row {
  readonly id: string;
  /** Microseconds since 1970. */
  readonly startMicros: Micros;
  /** Undefined where the log does not have it. */
  readonly endMicros: Micros | undefined;
  readonly endpoint: string;
  readonly ok: boolean;
  readonly model: string;
  readonly session: string;
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly requestBytes: number | undefined;
}

const ROWS_MAX = 2_000_000;
const MICROS_PER_SECOND = 1e6;
const MICROS_PER_MILLI = 1e3;
/** Of English text in JSON. */
const BYTES_PER_TOKEN = 4;

/** The log that a line's keys are of; undefined for none. Spans are a workload, whether they have places or not. */
export function accessLogOf(record: JsonRecord): RoutedLogKind | undefined {
  if ("upstream_addr" in record) return "nginx";
  if ("upstream_host" in record && "start_time" in record) return "envoy";
  if (record["msg"] === PICKED || ("msg" in record && "caller" in record && "x-request-id" in record)) return "llm-d";
  return undefined;
}

/**
 * A log of JSON lines, as nginx (log_format escape=json), Envoy (json_format) and llm-d's picker (its own, at verbosity 2)
 * write it, or OpenTelemetry's spans that name an upstream. Nothing in it shows what prompts share. What a line has beside:
 * `request_id`, `model`, `session`, `prompt_tokens`, `output_tokens` or `completion_tokens`, by these names.
 */
export async function readAccessLog(path: string, kind: RoutedLogKind, report: ImportReport): Promise<RoutedLog> {
  const rows: Row[] = [];
  for await (const line of readLines(path)) {
    const record = line.tooLong ? "line too long" : parseRecord(line.text);
    for (const row of typeof record === "string" ? [record] : rowsOf(kind, record)) {
      report.records++;
      if (typeof row === "string") report.refuse(`${path}:${line.number}`, row);
      else if (rows.push(row) > ROWS_MAX) throw new ImportError(`${path}: expected at most ${ROWS_MAX} requests`);
    }
  }
  rows.sort((a, b) => a.startMicros - b.startMicros);
  const startWallMicros = rows[0]?.startMicros ?? 0;
  const endpoints = [...new Set(rows.map(({ endpoint }) => endpoint))].sort();
  return { endpoints, startWallMicros, requests: rows.map((row) => trafficOf(row, startWallMicros, report)) };
}

function trafficOf(row: Row, startWallMicros: number, report: ImportReport): TrafficRequest {
  const { startMicros, endMicros, requestBytes, outputTokens } = row;
  let { promptTokens } = row;
  if (promptTokens === undefined && requestBytes !== undefined) {
    promptTokens = Math.max(1, Math.round(requestBytes / BYTES_PER_TOKEN));
    report.adjust("prompt's tokens taken from the request's bytes");
  }
  if (promptTokens === undefined) report.adjust("prompt of unknown length taken for 1 token");
  if (outputTokens === undefined) report.adjust("answer of unknown length: it is not simulated");
  if (endMicros === undefined) report.adjust("without an end: what is in flight is not known");
  return {
    id: row.id,
    request: {
      ...LENGTHS_ONLY,
      index: report.accept(),
      arrivalMicros: startMicros - startWallMicros,
      promptTokens: promptTokens ?? 1,
      outputTokens: outputTokens ?? 1,
      model: row.model,
      session: row.session,
    },
    observed: {
      endpoint: row.endpoint,
      outcome: row.ok ? "ok" : "failed",
      ttftMicros: NaN,
      e2eMicros: endMicros === undefined ? NaN : endMicros - startMicros,
      cachedTokens: NaN,
      ...(outputTokens === undefined && { isAnswerUnknown: true }),
    },
  };
}

/** The requests of a line, and what is wrong with others. */
function rowsOf(kind: RoutedLogKind, record: JsonRecord): readonly (Row | string)[] {
  if (kind === "otel-spans") return [...spansOf(record)].flatMap(spanRow);
  return kind === "llm-d" && record["msg"] !== PICKED ? [] : [READERS[kind](record)];
}

type Reader = (record: JsonRecord) => Row | string;

/** llm-d's line about a decision. */
const PICKED = "Request handled";

const READERS: Readonly<Record<Exclude<RoutedLogKind, "otel-spans">, Reader>> = {
  nginx(record) {
    const endpoint = endpointOf(record["upstream_addr"]);
    if (endpoint === undefined) return "upstream_addr is not an address";
    const logged = number(record["msec"]) ?? wallSeconds(record["time_iso8601"]);
    if (logged === undefined) return "neither msec nor time_iso8601 is a time";
    const took = number(record["request_time"]);
    if (took === undefined) return "request_time is not a time";
    const endMicros = Math.round(logged * MICROS_PER_SECOND);
    return common(record, {
      endpoint,
      startMicros: endMicros - Math.round(took * MICROS_PER_SECOND),
      endMicros,
      status: number(record["status"]),
      requestBytes: number(record["request_length"]),
    });
  },
  envoy(record) {
    const endpoint = endpointOf(record["upstream_host"]);
    if (endpoint === undefined) return "upstream_host is not an address";
    const started = wallSeconds(record["start_time"]);
    if (started === undefined) return "start_time is not a time";
    const took = number(record["duration"]);
    if (took === undefined) return "duration is not a time";
    const startMicros = Math.round(started * MICROS_PER_SECOND);
    return common(record, {
      endpoint,
      startMicros,
      endMicros: startMicros + Math.round(took * MICROS_PER_MILLI),
      status: number(record["response_code"]),
      requestBytes: number(record["bytes_received"]),
    });
  },
  "llm-d"(record) {
    const endpoint = endpointOf(record["endpoint"]);
    if (endpoint === undefined) return "endpoint is not an address";
    const started = wallSeconds(record["ts"]);
    if (started === undefined) return "ts is not a time";
    const startMicros = Math.round(started * MICROS_PER_SECOND);
    const model = textField(record, "targetModel");
    return common(
      { model, ...record },
      { endpoint, startMicros, endMicros: undefined, status: 200, requestBytes: undefined },
    );
  },
};

const NANOS_PER_MICRO = 1e3;
/** Where a proxy's span has the address that it sent the request to. */
const UPSTREAM_KEYS = ["upstream_address", "upstream.address", "network.peer.address", "server.address"];
const PORT_KEYS = ["network.peer.port", "server.port"];

/** Of a span that names an upstream; none of others. */
function spanRow(span: JsonRecord): (Row | string)[] {
  const attributes = attributesOf(span);
  const [address] = UPSTREAM_KEYS.flatMap((key) => attributes.get(key) ?? []);
  if (address === undefined) return [];
  const [port] = PORT_KEYS.flatMap((key) => attributes.get(key) ?? []);
  const endpoint =
    endpointOf(address) ?? (typeof address === "string" ? endpointOf(`${address}:${portOf(port)}`) : undefined);
  if (endpoint === undefined) return ["the upstream's address is not one"];
  const [began, ended] = [number(span["startTimeUnixNano"]), number(span["endTimeUnixNano"])];
  if (began === undefined || ended === undefined || ended < began) return ["the span's times are not times"];
  const micros = (nanos: number): number => Math.round(nanos / NANOS_PER_MICRO);
  const status = number(attributes.get("http.response.status_code") ?? attributes.get("http.status_code"));
  const times = { startMicros: micros(began), endMicros: micros(ended) };
  return [common(asLine(span, attributes), { endpoint, ...times, status: status ?? 200, requestBytes: undefined })];
}

function portOf(value: unknown): string {
  return typeof value === "number" || typeof value === "string" ? `${value}` : "";
}

/** By the names that lines have. */
function asLine(span: JsonRecord, attributes: SpanAttributes): JsonRecord {
  const named = (name: string, ...keys: readonly string[]): JsonRecord => {
    const [value] = keys.flatMap((key) => attributes.get(key) ?? []);
    return value === undefined ? {} : { [name]: value };
  };
  return {
    request_id: attributes.get("guid:x-request-id") ?? span["spanId"],
    ...named("model", "gen_ai.request.model"),
    ...named("session", "session.id", "gen_ai.conversation.id"),
    ...named("prompt_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    ...named("output_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
  };
}

interface Place {
  readonly endpoint: string;
  readonly startMicros: Micros;
  readonly endMicros: Micros | undefined;
  readonly status: number | undefined;
  readonly requestBytes: number | undefined;
}

/** What all of them may have, under the same names. */
function common(record: JsonRecord, { status, ...place }: Place): Row | string {
  if (status === undefined) return "the status is not a number";
  const promptTokens = tokens(record["prompt_tokens"]);
  const outputTokens = tokens(record["output_tokens"] ?? record["completion_tokens"]);
  if (promptTokens === null || outputTokens === null) return `tokens are not a number up to ${REQUEST_TOKENS_MAX}`;
  return {
    ...place,
    id: textField(record, "request_id") ?? textField(record, "x-request-id") ?? "",
    ok: status < 400,
    model: textField(record, "model") ?? "",
    session: textField(record, "session") ?? "",
    promptTokens: promptTokens === 0 ? undefined : promptTokens,
    outputTokens: outputTokens === 0 ? undefined : outputTokens,
  };
}

/** Of several, after retries or as alternatives, nginx's is the last one and a picker's the first. */
function endpointOf(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const addresses = value.split(/[,\s]+/).filter((one) => /^[^/\s:]+:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/.test(one));
  const address = value.includes(", ") ? addresses.at(-1) : addresses[0];
  return address === undefined ? undefined : `http://${address}`;
}

/** nginx writes its numbers as texts. */
function number(value: unknown): number | undefined {
  const found = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof found === "number" && Number.isFinite(found) && found >= 0 ? found : undefined;
}

/** Undefined where there are none; null for what is none. */
function tokens(value: unknown): number | undefined | null {
  if (value === undefined || value === null || value === "" || value === "-") return undefined;
  const found = number(value);
  return found !== undefined && Number.isInteger(found) && found <= REQUEST_TOKENS_MAX ? found : null;
}

/** Seconds since 1970 of a text in ISO 8601, or of a number of seconds. */
function wallSeconds(value: unknown): number | undefined {
  if (typeof value === "number") return number(value);
  const millis = typeof value === "string" ? Date.parse(value) : NaN;
  if (Number.isNaN(millis)) return undefined;
  // Date stops at milliseconds.
  const micros = /\.\d{3}(\d{1,3})/.exec(String(value))?.[1] ?? "";
  return millis / 1e3 + Number(micros.padEnd(3, "0")) / 1e6;
}
