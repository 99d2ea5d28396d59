import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { ENGINE_DEAD } from "./api-error.ts";
import { isOpen, type ServedRequest } from "./exchange.ts";

/** Header names and values in turns, in wire order. */
export type HeaderList = readonly string[];

const NO_HEADERS: HeaderList = [];

/** What a garbage fault sends: neither JSON nor an event, nor valid UTF-8. */
export const GARBAGE = Buffer.from("<html>\u0000\u0001 502 oops {{{ data data: ]\u00ff\u00fe\n\n{", "latin1");

/** Sends a JSON text with its length. `leading` goes between `server` and `content-length`. */
export function sendJson(
  exchange: ServedRequest,
  status: number,
  json: string,
  leading: HeaderList = NO_HEADERS,
): void {
  sendBody(exchange, status, "application/json", json, leading);
}

export function sendBody(
  exchange: ServedRequest,
  status: number,
  contentType: string,
  text: string,
  leading: HeaderList = NO_HEADERS,
): void {
  const { slowMs } = exchange.faults;
  if (slowMs === 0) {
    writeBody(exchange, status, contentType, text, leading);
    return;
  }
  setTimeout(() => {
    if (isOpen(exchange)) writeBody(exchange, status, contentType, text, leading);
  }, slowMs);
}

function writeBody(
  exchange: ServedRequest,
  status: number,
  contentType: string,
  text: string,
  leading: HeaderList,
): void {
  const { ending } = exchange.faults;
  const { response } = exchange;
  const failing = ending?.kind === "error";
  const whole = Buffer.from(failing ? ENGINE_DEAD.json : text, "utf8");
  const half = whole.subarray(0, whole.length / 2);
  const body = ending?.kind === "garbage" ? GARBAGE : ending?.kind === "truncate" ? half : whole;
  const headers = opening();
  headers.push(...leading, "content-length", String(body.length));
  headers.push("content-type", exchange.faults.contentType ?? contentType);
  begin(exchange, failing ? ENGINE_DEAD.code : status, closing(exchange, headers), body.length);
  if (ending?.kind === "stall") response.write(half);
  else if (ending?.kind === "cut") response.write(half, () => response.socket?.destroySoon());
  else response.end(body);
}

/** A response with neither body nor content type. `trailing` goes after `content-length`. */
export function sendEmpty(exchange: ServedRequest, status: number, trailing: HeaderList = NO_HEADERS): void {
  const headers = opening();
  headers.push("content-length", "0", ...trailing);
  begin(exchange, status, closing(exchange, headers), 0);
  exchange.response.end();
}

/** Starlette's refusal of a foreign origin: its `vary` comes early and is long. */
export function sendPreflightRefusal(exchange: ServedRequest): void {
  const text = "Disallowed CORS origin";
  const asked = ["Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"];
  const headers = opening();
  headers.push("vary", [...asked, "Access-Control-Request-Private-Network"].join(", "));
  headers.push("access-control-allow-methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY");
  headers.push("access-control-max-age", "600", "content-length", String(text.length));
  headers.push("content-type", "text/plain; charset=utf-8");
  exchange.vary = false;
  begin(exchange, 400, closing(exchange, headers), text.length);
  exchange.response.end(text);
}

/** Sends the headers of an event stream at once, as vLLM does before it has a token. The caller frames the chunks. */
export function beginStream(exchange: ServedRequest): void {
  const headers = opening();
  headers.push("content-type", exchange.faults.contentType ?? "text/event-stream; charset=utf-8");
  closing(exchange, headers).push("transfer-encoding", "chunked");
  begin(exchange, 200, headers, 0);
  exchange.response.flushHeaders();
  exchange.response.chunkedEncoding = false;
}

function opening(): string[] {
  return ["date", httpDate(), "server", "uvicorn"];
}

function closing(exchange: ServedRequest, headers: string[]): string[] {
  if (exchange.vary) headers.push("vary", "Origin");
  if (exchange.requestId !== "") headers.push("x-request-id", exchange.requestId);
  if (exchange.request.headers.connection?.toLowerCase() === "close") headers.push("connection", "close");
  return headers;
}

function begin(exchange: ServedRequest, status: number, headers: string[], bytes: number): void {
  const { response } = exchange;
  response.removeHeader("connection");
  response.removeHeader("date");
  response.writeHead(status, headers);
  exchange.status = status;
  exchange.responseBytes = bytes;
}

let dateText = "";
let dateSecond = -1;

/** The current date in the HTTP format, formatted once a second. */
export function httpDate(): string {
  const now = Date.now();
  const second = Math.floor(now / MILLIS_PER_SECOND);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(now).toUTCString();
  }
  return dateText;
}
