import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { type HttpBindings, getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";

import type { ChatContext, RequestObserver } from "./chat-context.ts";
import { type ClientAuth, clientAuth } from "./request/client-auth.ts";
import { type Drained, drainGateway } from "./drain-gateway.ts";
import type { EndpointDirectory } from "./discovery/endpoint-directory.ts";
import { type Refusal, ERRORS, errorBody, errorHeaders, refusal } from "./answer/errors.ts";
import { type GatewayCounters, newCounters } from "./metrics/gateway-counters.ts";
import { GatewayMessage } from "./request/gateway-message.ts";
import { answerHttpFaults } from "./request/http-faults.ts";
import { Identifier, type IdentityOptions } from "./request/identity.ts";
import { InFlight } from "./request/in-flight.ts";
import { InferenceDoor, UNAUTHORIZED } from "./request/inference-door.ts";
import type { Journal } from "./journal.ts";
import { DEFAULT_LIMITS, type GatewayLimits } from "./request/limits.ts";
import { servedModels } from "./discovery/models.ts";
import { RetryBudget } from "./upstream/retry-budget.ts";
import { isKnownRoute } from "./request/route.ts";
import type { Tokenizer } from "./tokenizer/tokenizer.ts";
import { UpstreamPools } from "./upstream/upstream-pools.ts";

export type GatewayApp = Hono<{ Bindings: HttpBindings }>;

export interface GatewayOptions {
  readonly journal: Journal;
  readonly directory: EndpointDirectory;
  /** The tokenizer for a model as the client named it. */
  readonly tokenizer: (model: string) => Tokenizer;
  readonly observe: RequestObserver;
  readonly identity: IdentityOptions;
  /** Profile for a model, where the request asked for `asked` ("" for none); without it, what was asked for. */
  readonly profileOf?: (model: string, asked: string) => string | Refusal;
  readonly limits?: Partial<GatewayLimits>;
  /** Bearer tokens that clients must send; none lets everybody in and passes their Authorization on to the engines. */
  readonly clientKeys?: readonly string[];
  /** Asks engines for usage in every stream, and keeps the chunk that this adds from clients that did not ask. */
  readonly requestUsage?: boolean;
  /** Mounts what else is served on the same port, before the unknown paths. */
  readonly statusRoutes?: (app: GatewayApp) => void;
}

export interface Gateway {
  readonly app: GatewayApp;
  readonly counters: GatewayCounters;
  readonly limits: GatewayLimits;
  /** Requests between their head and their last byte. */
  inFlight(): number;
  /** Rejects with the socket's error when the address cannot be had. Port 0 takes a free one. */
  listen(host: string, port: number): Promise<{ readonly url: string }>;
  /**
   * Goes on taking requests for `noticeMillis`, while load balancers learn that it leaves. Then refuses new ones, waits
   * for those in flight at most `graceMillis` and cuts them off. All else is served until then.
   */
  close(graceMillis: number, noticeMillis?: number): Promise<Drained>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const limits: GatewayLimits = { ...DEFAULT_LIMITS, ...options.limits };
  const counters = newCounters();
  const pools = new UpstreamPools(limits);
  options.directory.listen(pools);
  const context: ChatContext = {
    ...options,
    pools,
    limits,
    counters,
    identifier: new Identifier(options.identity),
    retryBudget: new RetryBudget(limits.retryRatio, limits.retryBurst),
    profileOf: options.profileOf ?? ((_model, asked) => asked),
    requestUsage: options.requestUsage ?? false,
    keepsAuthorization: options.clientKeys !== undefined,
    inFlight: new InFlight(limits.sweepMillis),
    bodyBytesInFlight: 0,
    sequence: 0,
    leaving: false,
    draining: false,
  };
  const app: GatewayApp = new Hono();
  options.statusRoutes?.(app);
  const allowed = options.clientKeys === undefined ? () => true : clientAuth(options.clientKeys);
  const door = new InferenceDoor(context, allowed);
  addRoutes(app, context, allowed, door);
  const server = newServer(app, context, door);
  return {
    app,
    counters,
    limits,
    inFlight: () => context.inFlight.size,
    listen: (host, port) => listen(server, host, port),
    close: (graceMillis, noticeMillis = 0) => drainGateway(server, context, { graceMillis, noticeMillis }),
  };
}

function addRoutes(app: GatewayApp, context: ChatContext, allowed: ClientAuth, door: InferenceDoor): void {
  app.post("/v1/*", (c) => {
    door.serve(c.env.incoming, c.env.outgoing);
    return RESPONSE_ALREADY_SENT;
  });
  app.get("/v1/models", (c) => {
    if (!allowed(c.req.header("authorization"))) return errorResponse(UNAUTHORIZED);
    return c.json({ object: "list", data: servedModels(context.directory) });
  });
  app.get("/v1/models/:id{.+}", (c) => {
    if (!allowed(c.req.header("authorization"))) return errorResponse(UNAUTHORIZED);
    const id = c.req.param("id");
    const model = servedModels(context.directory).find((served) => served.id === id);
    return model === undefined
      ? errorResponse(refusal("unknown-model", "This model is not served.", "model"))
      : c.json(model);
  });
  app.notFound((c) => {
    const { path, method } = c.req;
    if (isKnownRoute(path)) return errorResponse(refusal("wrong-method", `${path} takes POST.`), { allow: "POST" });
    return errorResponse(refusal("unknown-path", `There is nothing at ${method} ${path.slice(0, PATH_SHOWN_MAX)}.`));
  });
  app.onError(() => {
    context.counters.internalErrors++;
    return errorResponse(refusal("internal", "The gateway failed on this request."));
  });
}

const PATH_SHOWN_MAX = 200;

function errorResponse(refused: Refusal, headers: Record<string, string> = {}): Response {
  const body = errorBody(refused);
  const flat = errorHeaders(refused, Buffer.byteLength(body));
  const all: Record<string, string> = { ...headers };
  for (let i = 0; i < flat.length; i += 2) all[flat[i]!] = flat[i + 1]!;
  return new Response(body, { status: ERRORS[refused.reason].status, headers: all });
}

/**
 * The server's own limits bound the receiving of a request; a long answer is not touched by them. Clients' sockets send
 * small packets at once.
 */
function newServer(app: GatewayApp, context: ChatContext, door: InferenceDoor): Server {
  const { limits, counters, inFlight } = context;
  const listener = getRequestListener(app.fetch, {
    hostname: "gateway.invalid",
    errorHandler: () => errorResponse(MALFORMED_TARGET),
  });
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (door.takes(incoming)) door.serve(incoming, outgoing);
    else if (incoming.headers.host === undefined && incoming.httpVersionMinor > 0) refuseHost(outgoing);
    else void listener(incoming, outgoing);
  };
  const server = createServer(
    {
      IncomingMessage: GatewayMessage,
      noDelay: true,
      keepAliveTimeout: limits.clientKeepAliveMillis,
      headersTimeout: limits.headersMillisMax,
      requestTimeout: limits.requestReadMillisMax,
      connectionsCheckingInterval: Math.min(CHECK_MILLIS_MAX, Math.ceil(limits.headersMillisMax / CHECKS_PER_LIMIT)),
      // Node's own refusal has no body.
      requireHostHeader: false,
    },
    serve,
  );
  server.maxConnections = limits.clientConnectionsMax;
  server.on("drop", () => counters.connectionsDropped++);
  answerHttpFaults(server, {
    serve,
    bodyBytesMax: limits.bodyBytesMax,
    answering: (socket) => inFlight.answering(socket),
    malformed: () => counters.malformedHttp++,
  });
  return server;
}

/** Node looks only every 30 s for requests that are too slow, which a shorter limit would not notice. */
const CHECK_MILLIS_MAX = 5_000;
const CHECKS_PER_LIMIT = 4;

const MALFORMED_TARGET = refusal("bad-request", "The request's host or target is malformed.");

/** HTTP/1.1 requires a host (RFC 9112 3.2). */
function refuseHost(outgoing: ServerResponse): void {
  const body = errorBody(MALFORMED_TARGET);
  const headers = [...errorHeaders(MALFORMED_TARGET, Buffer.byteLength(body)), "connection", "close"];
  outgoing.writeHead(ERRORS["bad-request"].status, headers).end(body);
}

function listen(server: Server, host: string, port: number): Promise<{ url: string }> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.removeListener("error", reject);
      const { address, port: taken, family } = server.address() as AddressInfo;
      resolve({ url: `http://${family === "IPv6" ? `[${address}]` : address}:${taken}` });
    });
  });
}
