import type { IncomingMessage, ServerResponse } from "node:http";

import type { GatewayParts } from "../gateway/gateway-parts.ts";
import type { ClientAuth } from "../http/client-auth.ts";
import { type Refusal, ERRORS, errorBody, errorHeaders, refusal } from "../http/errors.ts";
import { Exchange } from "./exchange.ts";
import { hostOf } from "../request/malformed-target.ts";
import { type RequestTarget, RequestTargets } from "../request/request-target.ts";
import type { Routes } from "../http/route.ts";
import { serveInference } from "./serve-inference.ts";
import type { TrustedProxies } from "../request/trusted-proxies.ts";

export const UNAUTHORIZED = refusal(
  "unauthorized",
  "Send one of this gateway's keys as a bearer token, or as x-api-key.",
);
const INTERNAL = refusal("internal", "The gateway failed on this request.");
const FULL = refusal("full", "The gateway's limit of concurrent requests is reached; try again later.");
/** What a host is made of where nothing is wrong with it. */
const PLAIN_HOST = /^[\w.:[\]-]+$/;

/** Where inference requests come in: each becomes an exchange, or is refused by what is known before its body. */
export class InferenceDoor {
  readonly #context: GatewayParts;
  readonly #allowed: ClientAuth;
  readonly #targets: RequestTargets;
  readonly #trusts: TrustedProxies | undefined;
  /** The last host found to be plain; most requests have the same. */
  #plainHost = "";

  constructor(context: GatewayParts, allowed: ClientAuth, routes: Routes, trusts?: TrustedProxies) {
    this.#context = context;
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
      const exchange = new Exchange(this.#context, incoming, outgoing, target);
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

  #refusal({ headers, incoming }: Exchange): Refusal | undefined {
    const { connections, inFlight, limits, bodies } = this.#context;
    const client = this.#allowed(headers.get("authorization"), headers.get("x-api-key"));
    if (client === undefined) return UNAUTHORIZED;
    headers.client = client;
    headers.trusted = this.#trusts?.(incoming.socket.remoteAddress) === true;
    if (connections.isLate(incoming.socket)) return refusal("draining", "The gateway is shutting down.");
    if (inFlight.size > limits.requestsInFlightMax && !bodies.makeWay()) return FULL;
    return refusalOfEncoding(headers.get("content-encoding"));
  }

  #failed(outgoing: ServerResponse, error: unknown): void {
    this.#context.counters.internalErrors++;
    this.#context.observe.bug?.(error);
    if (outgoing.headersSent) {
      outgoing.destroy();
      return;
    }
    const body = errorBody(INTERNAL);
    outgoing.writeHead(ERRORS.internal.status, errorHeaders(INTERNAL, Buffer.byteLength(body))).end(body);
  }
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
