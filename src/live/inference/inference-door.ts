import type { IncomingMessage, ServerResponse } from "node:http";
import { type Socket, BlockList, isIPv6 } from "node:net";
import type { ClientAuth } from "../http/client-auth.ts";
import { type Refusal, ERRORS, errorBody, errorHeaders, refusal } from "../http/errors.ts";
import { InferenceExchange, type ExchangeShared } from "./inference-exchange.ts";
import { hostOf, type RequestTarget, RequestTargets } from "../request/request-target.ts";
import type { Routes } from "../http/route.ts";
import { readBody } from "../http/request-body.ts";
import { type OnRouted, askBody } from "../routing/ask.ts";
import { Forward } from "../upstream/forward.ts";
import { BODY_READ } from "#core/path/path-event.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { RequestHeaders } from "../http/headers.ts";

export const UNAUTHORIZED = refusal(
  "unauthorized",
  "Send one of this gateway's keys as a bearer token, or as x-api-key.",
);
const INTERNAL = refusal("internal", "The gateway failed on this request.");
const FULL = refusal("full", "The gateway's limit of concurrent requests is reached; try again later.");
/** What a host is made of where nothing is wrong with it. */
const PLAIN_HOST = /^[\w.:[\]-]+$/;

/** What requests share, and the connections that they come by. */
export type DoorShared = ExchangeShared & {
  readonly connections: { isLate(socket: Socket): boolean };
  readonly phase: "serving" | "leaving" | "draining";
};

/** Where inference requests come in: each becomes an exchange, or is refused by what is known before its body. */
export class InferenceDoor {
  readonly #shared: DoorShared;
  readonly #allowed: ClientAuth;
  readonly #targets: RequestTargets;
  readonly #trusts: TrustedProxies | undefined;
  /** The last host found to be plain; most requests have the same. */
  #plainHost = "";

  constructor(shared: DoorShared, allowed: ClientAuth, routes: Routes, trusts?: TrustedProxies) {
    this.#shared = shared;
    this.#targets = new RequestTargets(routes);
    this.#allowed = allowed;
    this.#trusts = trusts;
  }

  /**
   * Whether a request can come straight in. All others go through the HTTP framework, which normalises their target and
   * judges their host first (4 us).
   */
  takes({ method, url = "", rawHeaders }: IncomingMessage): boolean {
    if (method !== "POST" || this.#targets.of(url) === undefined) return false;
    const host = hostOf(rawHeaders);
    return host !== undefined && this.#isPlain(host);
  }

  /** False where no inference route has this target; nothing is answered then. */
  serve(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const target = this.#targets.of(incoming.url ?? "/");
    if (target !== undefined) this.#serve(target, incoming, outgoing);
    return target !== undefined;
  }

  #serve(target: RequestTarget, incoming: IncomingMessage, outgoing: ServerResponse): void {
    try {
      const exchange = new InferenceExchange(this.#shared, incoming, outgoing, target);
      const refused = this.#refusal(exchange);
      if (refused === undefined) serveInference(exchange);
      else exchange.refuse(refused);
    } catch (error) {
      this.#failed(outgoing, error);
    }
  }

  #isPlain(host: string): boolean {
    if (host === this.#plainHost) return true;
    if (!PLAIN_HOST.test(host)) return false;
    this.#plainHost = host;
    return true;
  }

  #refusal({ headers, incoming }: InferenceExchange): Refusal | undefined {
    const { connections, phase, inFlight, limits, bodies } = this.#shared;
    const client = this.#allowed(headers.get("authorization"), headers.get("x-api-key"));
    if (client === undefined) return UNAUTHORIZED;
    headers.client = client;
    headers.trusted = this.#trusts?.(incoming.socket.remoteAddress) === true;
    if (phase !== "serving" && connections.isLate(incoming.socket))
      return refusal("draining", "The gateway is shutting down.");
    if (inFlight.size > limits.requestsInFlightMax && !bodies.makeWay()) return FULL;
    return this.#shared.passesUnread ? undefined : refusalOfEncoding(headers.get("content-encoding"));
  }

  #failed(outgoing: ServerResponse, error: unknown): void {
    this.#shared.counters.internalErrors++;
    this.#shared.observe.bug?.(error);
    if (outgoing.headersSent) {
      outgoing.destroy();
      return;
    }
    const body = errorBody(INTERNAL);
    outgoing.writeHead(ERRORS.internal.status, errorHeaders(INTERNAL, Buffer.byteLength(body))).end(body);
  }
}

/**
 * The path of one inference request: body → what it asks → who asks → its tokens and block hashes → the decision → the
 * endpoint's answer, which `Forward` carries back while it reports to the router how it goes.
 *
 * It waits only for the body and for a tokenizer that cannot answer at once; all else is one run of the event loop.
 */
function serveInference(exchange: InferenceExchange): void {
  const { shared, limits, incoming, headers } = exchange;
  const timeout = clientTimeout(headers, shared.timeoutHeaders);
  if (typeof timeout === "string") return exchange.refuse(refusal("bad-request", timeout));
  exchange.timeoutMicros = timeout;
  if (timeout !== undefined) exchange.deadlineAt = exchange.openedAt + timeout;
  shared.spans?.opened(exchange);
  readBody(incoming, {
    asker: exchange,
    declaredLength: headers.get("content-length"),
    bytesMax: limits.bodyBytesMax,
    hold: (bytes) => exchange.holdBody(bytes),
    done: (body) => {
      exchange.bodyCame();
      exchange.dispatch(BODY_READ);
      if (exchange.over) return;
      if (!Buffer.isBuffer(body)) return exchange.refuse(body);
      const routed: OnRouted = (decision, sent, hidesUsage) => {
        shared.router.sent();
        exchange.forward(new Forward(exchange, sent, decision, hidesUsage));
      };
      askBody(exchange, body, routed, (parsed, prompt) => shared.performers.keep(exchange, parsed, prompt));
    },
  });
}

/** A compressed body would have to be unpacked to be read, which costs its sender nothing and the gateway much. */
function refusalOfEncoding(encoding: string): Refusal | undefined {
  if (encoding === "" || encoding.toLowerCase() === "identity") return undefined;
  return refusal(
    "compressed",
    `The body is compressed (${encoding.slice(0, ENCODING_SHOWN_MAX)}); accepted content encodings: identity.`,
  );
}

const ENCODING_SHOWN_MAX = 40;

/** As gRPC writes a timeout: at most eight digits and a unit. */
const GRPC = /^(\d{1,8})([HMSmun])$/;
const MILLIS = /^\d{1,12}$/;
const UNIT_MICROS: Readonly<Record<string, number>> = {
  H: 3_600 * MICROS_PER_SECOND,
  M: 60 * MICROS_PER_SECOND,
  S: MICROS_PER_SECOND,
  m: MICROS_PER_MILLI,
  u: 1,
  n: 0.001,
};

/**
 * How long a client waits for the whole of its answer, by the first of these headers that it sent; undefined where it sent
 * none, or 0, which is no limit. `grpc-timeout` has gRPC's form, every other one milliseconds. Returns what is wrong where
 * one has neither.
 */
export function clientTimeout(headers: RequestHeaders, names: readonly string[]): Micros | undefined | string {
  for (const name of names) {
    const text = headers.get(name).trim();
    if (text === "") continue;
    const micros =
      name === "grpc-timeout" ? grpcMicros(text) : MILLIS.test(text) ? Number(text) * MICROS_PER_MILLI : NaN;
    if (Number.isNaN(micros)) return `${name}: expected ${FORMS[name] ?? "milliseconds, a whole number"}`;
    return micros === 0 ? undefined : micros;
  }
  return undefined;
}

const FORMS: Readonly<Record<string, string>> = {
  "grpc-timeout": "at most eight digits and one of H, M, S, m, u, n, such as 10S",
};

function grpcMicros(text: string): number {
  const [, digits, unit] = GRPC.exec(text) ?? [];
  return digits === undefined ? NaN : Math.ceil(Number(digits) * UNIT_MICROS[unit!]!);
}

/** Whether the address of a socket's other end is that of a proxy that is trusted. */
type TrustedProxies = (address: string | undefined) => boolean;

/** Of addresses and networks, such as 10.0.0.7 and 10.1.0.0/16; undefined where there are none. */
export function trustedProxies(networks: readonly string[]): TrustedProxies | undefined {
  if (networks.length === 0) return undefined;
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => address !== undefined && list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}
