import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { familyHead, labelText, promFloat } from "./exposition.ts";
import { Histogram } from "./histogram.ts";

/** Routes that vLLM leaves out of its HTTP metrics. */
const EXCLUDED = new Set(["/metrics", "/health", "/load", "/ping", "/version", "/server_info"]);
const HANDLERS_MAX = 64;

const FINE_SECONDS = [
  0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60,
];
const COARSE_SECONDS = [0.1, 0.5, 1];

interface Summary {
  count: number;
  sum: number;
  readonly createdAt: number;
}

const REQUESTS = "Total number of requests by method, status and handler.";
const REQUEST_SIZE =
  "Content length of incoming requests by handler. Only value of header is respected. Otherwise ignored. No percentile calculated. ";
const RESPONSE_SIZE =
  "Content length of outgoing responses by handler. Only value of header is respected. Otherwise ignored. No percentile calculated. ";
const FINE = "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ";
const COARSE =
  "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ";

/** The HTTP families of vLLM's page (its FastAPI instrumentator's). */
export class HttpMetrics {
  readonly #createdAt = Date.now() / MILLIS_PER_SECOND;
  readonly #requests = new Map<string, Summary>();
  readonly #requestBytes = new Map<string, Summary>();
  readonly #responseBytes = new Map<string, Summary>();
  readonly #durations = new Map<string, { readonly histogram: Histogram; readonly createdAt: number }>();
  readonly #fine = new Histogram("http_request_duration_highr_seconds", {}, FINE_SECONDS);

  /** Counts a request whose answer has been sent. */
  record(exchange: ServedRequest): void {
    const { handler, request, status } = exchange;
    if (EXCLUDED.has(exchange.path) || status === 0) return;
    if (!this.#requestBytes.has(labelText({ handler })) && this.#requestBytes.size >= HANDLERS_MAX) return;
    const method = request.method ?? "GET";
    const seconds = (performance.now() - exchange.arrivedAtMs) / MILLIS_PER_SECOND;
    add(this.#requests, labelText({ handler, method, status: `${Math.floor(status / 100)}xx` }), 1);
    add(this.#requestBytes, labelText({ handler }), Number(request.headers["content-length"] ?? 0));
    add(this.#responseBytes, labelText({ handler }), exchange.responseBytes);
    this.#fine.observe(seconds);
    const labels = { handler, method };
    const key = labelText(labels);
    const known = this.#durations.get(key);
    const duration = known ?? {
      histogram: new Histogram("http_request_duration_seconds", labels, COARSE_SECONDS),
      createdAt: Date.now() / MILLIS_PER_SECOND,
    };
    if (known === undefined) this.#durations.set(key, duration);
    duration.histogram.observe(seconds);
  }

  render(): string {
    const counts = [...this.#requests].map(
      ([labels, { count }]) => `http_requests_total${labels} ${promFloat(count)}\n`,
    );
    const durations = [...this.#durations];
    const created = `http_request_duration_highr_seconds_created ${promFloat(this.#createdAt)}\n`;
    return [
      familyHead("http_requests_total", "counter", REQUESTS),
      ...counts,
      createdFamily("http_requests_created", REQUESTS, this.#requests),
      summary("http_request_size_bytes", REQUEST_SIZE, this.#requestBytes),
      summary("http_response_size_bytes", RESPONSE_SIZE, this.#responseBytes),
      familyHead("http_request_duration_highr_seconds", "histogram", FINE),
      this.#fine.render(),
      familyHead("http_request_duration_highr_seconds_created", "gauge", FINE),
      created,
      familyHead("http_request_duration_seconds", "histogram", COARSE),
      ...durations.map(([, { histogram }]) => histogram.render()),
      createdFamily("http_request_duration_seconds_created", COARSE, this.#durations),
    ].join("");
  }
}

function add(summaries: Map<string, Summary>, key: string, value: number): void {
  const known = summaries.get(key);
  if (known === undefined) {
    summaries.set(key, { count: 1, sum: value, createdAt: Date.now() / MILLIS_PER_SECOND });
    return;
  }
  known.count++;
  known.sum += value;
}

function summary(name: string, help: string, summaries: ReadonlyMap<string, Summary>): string {
  const lines = [...summaries].map(
    ([labels, { count, sum }]) =>
      `${name}_count${labels} ${promFloat(count)}\n${name}_sum${labels} ${promFloat(sum)}\n`,
  );
  return [familyHead(name, "summary", help), ...lines, createdFamily(`${name}_created`, help, summaries)].join("");
}

/** The family of creation times; absent while it has no member. */
function createdFamily(
  name: string,
  help: string,
  members: ReadonlyMap<string, { readonly createdAt: number }>,
): string {
  if (members.size === 0) return "";
  const lines = [...members].map(([labels, { createdAt }]) => `${name}${labels} ${promFloat(createdAt)}\n`);
  return [familyHead(name, "gauge", help), ...lines].join("");
}
