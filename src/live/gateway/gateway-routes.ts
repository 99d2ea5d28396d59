import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";

import { type Refusal, ERRORS, errorBody, errorHeaders, refusal } from "../http/errors.ts";
import { type BesideShared, BesideRequest } from "../beside/beside-request.ts";
import { type AdministrationShared, EngineAdministration } from "../beside/engine-administration.ts";
import type { StoredResponses } from "../beside/stored-responses.ts";
import type { EngineCaller } from "../beside/engine-caller.ts";
import type { AdministrationDone } from "../endpoints/adapter-loads.ts";
import type { EndpointDirectory, ServedModel } from "../endpoints/endpoint-directory.ts";
import { servedModels } from "../endpoints/models.ts";
import type { ClientAuth } from "../http/client-auth.ts";
import { type Cors, preflightHeaders, pushCors } from "../http/cors.ts";
import { type InferenceDoor, UNAUTHORIZED } from "../inference/inference-door.ts";
import type { GatewayLimits } from "../http/limits.ts";
import { besideCutEvent } from "../log/attempt-events.ts";
import type { RequestObserver } from "../log/request-observer.ts";
import type { Routes } from "../http/route.ts";
import type { AdminCaller, AdminVerdict } from "../admin/admin-access.ts";
import { type HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";

export type GatewayApp = Hono<{ Bindings: HttpBindings }>;

export interface AdministrationOptions {
  readonly paths: readonly string[];
  readonly access: (caller: AdminCaller) => AdminVerdict;
  /** Bound on a call at all engines, in milliseconds. */
  readonly millisMax: number;
  /** What engines did of a call, before its client learns of it. */
  readonly done?: (done: AdministrationDone) => Promise<void>;
}

/** What the routes share with inference. */
export interface RouteShared extends BesideShared, AdministrationShared {
  readonly directory: EndpointDirectory;
  /** Undefined where there is none. */
  readonly judges: { readonly names: readonly string[] } | undefined;
  readonly cors: Cors | undefined;
  readonly limits: GatewayLimits;
  readonly responses: StoredResponses;
  readonly observe: RequestObserver;
  readonly sendsOwnHeaders: boolean;
  readonly connections: { isLate(socket: Socket): boolean };
}

interface RoutesOptions {
  /** For clients. */
  readonly app: GatewayApp;
  /** For operators. */
  readonly admin: GatewayApp;
  readonly shared: RouteShared;
  readonly allowed: ClientAuth;
  readonly door: InferenceDoor;
  readonly routes: Routes;
  readonly caller: EngineCaller;
  readonly administration: AdministrationOptions | undefined;
}

/**
 * What each port serves beside probes and status pages. For clients: inference whose target needs reading first, models and
 * stored responses. For operators: engines' administration.
 */
export function addRoutes(options: RoutesOptions): void {
  const { app, shared, allowed, door } = options;
  addCors(options);
  addAdministration(options);
  addStoredResponses(options);
  app.post("*", (c, next) => {
    return door.serve(c.env.incoming, c.env.outgoing) ? Promise.resolve(RESPONSE_ALREADY_SENT) : next();
  });
  const asks = (incoming: IncomingMessage): boolean => isAllowed(allowed, incoming);
  app.get("/v1/models", (c) => {
    if (!asks(c.env.incoming)) return answerOf(shared, UNAUTHORIZED);
    return c.json({ object: "list", data: modelsOf(shared) });
  });
  app.get("/v1/models/:id{.+}", (c) => {
    if (!asks(c.env.incoming)) return answerOf(shared, UNAUTHORIZED);
    const id = c.req.param("id");
    const model = modelsOf(shared).find((served) => served.id === id);
    return model === undefined
      ? answerOf(shared, refusal("unknown-model", "This model is not served.", "model"))
      : c.json(model);
  });
  addFaults(app, options, INFERENCE_PORT);
  addFaults(options.admin, options, ADMIN_PORT);
}

/** What a port serves, for whoever asks for something else. */
interface PortText {
  readonly isInference: boolean;
  readonly pages: string;
}

const INFERENCE_PORT: PortText = {
  isInference: true,
  pages: "GET serves /v1/models, /metrics, /healthz and /readyz.",
};
const ADMIN_PORT: PortText = {
  isInference: false,
  pages: "GET serves /gnomon/ (the status page), /metrics, /healthz and /readyz; inference is served on listen.port.",
};

function addFaults(app: GatewayApp, { shared, routes }: RoutesOptions, { isInference, pages }: PortText): void {
  app.notFound((c) => {
    const { path, method } = c.req;
    if (isInference && method !== "POST" && routes.of(path) !== undefined) {
      return answerOf(shared, refusal("wrong-method", `${path} takes POST.`), path, { allow: "POST" });
    }
    shared.counters.refused["unknown-path"] = (shared.counters.refused["unknown-path"] ?? 0) + 1;
    if (isInference && ABSENT.test(path)) {
      const absent = `${path.slice(0, PATH_SHOWN_MAX)}: batches, files, uploads, fine-tuning and assistants are not served here: requests go to engines one by one, and nothing is kept of them. Send them to /v1/chat/completions; many prompts at once to /v1/chat/completions/batch, or with a class of low priority.`;
      return answerOf(shared, refusal("unknown-path", absent), path);
    }
    // As it was sent: dots and fragments are gone from the path, and with them what is wrong.
    const [target = path] = (c.env.incoming.url ?? path).split("?");
    const nothing = `There is nothing at ${method} ${target.slice(0, PATH_SHOWN_MAX)}.`;
    const inference = `POST serves ${routes.list()}. Further paths pass where routes.extra has them; status pages and administration are served on listen.adminPort.`;
    const there = isInference ? `${pages} ${inference}` : pages;
    return answerOf(shared, refusal("unknown-path", `${nothing} ${there}`), path);
  });
  app.onError((error) => {
    shared.counters.internalErrors++;
    shared.observe.bug?.(error);
    return answerOf(shared, refusal("internal", "The gateway failed on this request."));
  });
}

/** Models of the engines, and the names of what judges answers that are none. */
function modelsOf({ directory, judges }: RouteShared): ServedModel[] {
  const served = servedModels(directory);
  const names = (judges?.names ?? []).filter((name) => served.every(({ id }) => id !== name));
  return [...served, ...names.map((id) => ({ id, object: "model", owned_by: "gnomon" }) as const)];
}

const PATH_SHOWN_MAX = 200;
/** Of OpenAI's API what keeps something between requests. */
const ABSENT = /^\/v1\/(?:batches|files|uploads|fine_tuning|assistants|threads|vector_stores)(?:\/|$)/;

function isAllowed(allowed: ClientAuth, { headers }: IncomingMessage): boolean {
  const apiKey = headers["x-api-key"];
  return allowed(headers.authorization, typeof apiKey === "string" ? apiKey : undefined) !== undefined;
}

/** An error as a response, in the shape of the API whose path was asked for. */
function answerOf(
  { sendsOwnHeaders }: RouteShared,
  refused: Refusal,
  path = "",
  headers: Record<string, string> = {},
): Response {
  const body = errorBody(refused, path.startsWith("/v1/messages") ? "messages" : "other");
  const flat = errorHeaders(refused, Buffer.byteLength(body), sendsOwnHeaders);
  const all: Record<string, string> = { ...headers };
  for (let i = 0; i < flat.length; i += 2) all[flat[i]!] = flat[i + 1]!;
  return new Response(body, { status: ERRORS[refused.reason].status, headers: all });
}

/**
 * Preflights, which carry no key and are answered here, never by an engine. Where the configuration names origins all
 * answers of the gateway state what pages may do with them; else a preflight allows nothing.
 */
function addCors({ app, shared, routes }: RoutesOptions): void {
  const { cors } = shared;
  if (cors !== undefined) {
    app.use("*", async (c, next) => {
      await next();
      const headers: string[] = [];
      pushCors(headers, cors.of(c.req.header("origin") ?? ""));
      for (let i = 0; i < headers.length; i += 2) c.res.headers.set(headers[i]!, headers[i + 1]!);
    });
  }
  app.options("*", (c) => {
    if (cors !== undefined) {
      const requested = c.req.header("access-control-request-headers") ?? "";
      const flat = preflightHeaders(cors.of(c.req.header("origin") ?? ""), requested);
      for (let i = 0; i < flat.length; i += 2) c.header(flat[i]!, flat[i + 1]);
      return c.body(null, 204);
    }
    c.header("allow", routes.of(c.req.path) === undefined ? "GET, HEAD, POST, OPTIONS" : "POST, OPTIONS");
    return c.body(null, 204);
  });
}

function addStoredResponses({ app, shared, allowed }: RoutesOptions): void {
  app.on(
    ["GET", "POST"],
    ["/v1/responses/:id{[\\w-]{1,256}}", "/v1/responses/:id{[\\w-]{1,256}}/cancel"],
    async (c, next) => {
      const { path, method } = c.req;
      if (path.endsWith("/cancel") !== (method === "POST")) return next();
      if (!isAllowed(allowed, c.env.incoming)) return answerOf(shared, UNAUTHORIZED);
      return beside(shared, c.env.incoming, shared.limits.totalMillisMax, (request) =>
        shared.responses.serve(request, c.req.param("id"), path + new URL(c.req.url).search, shared.sendsOwnHeaders),
      );
    },
  );
}

function addAdministration({ admin, shared, caller, administration }: RoutesOptions): void {
  if (administration === undefined || administration.paths.length === 0) return;
  const engines = new EngineAdministration(shared, caller, administration.done);
  admin.on(["GET", "POST"], [...administration.paths], async (c) => {
    const { headers, socket } = c.env.incoming;
    const verdict = administration.access({ headers, remoteAddress: socket.remoteAddress });
    if (verdict === "unauthorized") return answerOf(shared, NEEDS_ADMIN_TOKEN);
    if (verdict === "forbidden") return answerOf(shared, NO_TOKEN);
    return beside(shared, c.env.incoming, administration.millisMax, (request) =>
      engines.serve(request, c.req.path + new URL(c.req.url).search),
    );
  });
}

const NEEDS_ADMIN_TOKEN = refusal("unauthorized", "Send the admin token as a bearer token, or as x-api-key.");
const NO_TOKEN = refusal("forbidden", "Engines are administered with the admin token alone; set admin.tokenEnv.");

/** Serves a request beside inference, which a gateway that drains waits for. */
async function beside(
  shared: RouteShared,
  incoming: IncomingMessage,
  millisMax: number,
  serve: (request: BesideRequest) => Promise<Response | Refusal>,
): Promise<Response> {
  if (shared.connections.isLate(incoming.socket))
    return answerOf(shared, refusal("draining", "The gateway is shutting down."));
  const request = new BesideRequest(shared, incoming, millisMax);
  const answer = await serve(request).catch((error: unknown) => {
    request.end();
    throw error;
  });
  if (!(answer instanceof Response)) {
    request.end();
    return answerOf(shared, answer, incoming.url);
  }
  return carried(shared, request, answer);
}

/**
 * The same response; its request ends when its body is through, or nobody reads it any more. Where the body breaks off, so
 * does the connection: passed on, the error would be printed by the HTTP framework.
 */
function carried(shared: RouteShared, request: BesideRequest, response: Response): Response {
  const { body, status, headers } = response;
  if (body === null) {
    request.end();
    return response;
  }
  const through = new TransformStream<Uint8Array, Uint8Array>();
  const ended = (broke: boolean): void => {
    request.end();
    const { incoming, requestId, endpoint } = request;
    if (!broke || incoming.socket.destroyed) return;
    shared.counters.cuts++;
    shared.observe.fault?.(besideCutEvent(requestId, endpoint));
    incoming.socket.destroy();
  };
  body.pipeTo(through.writable, { preventAbort: true }).then(
    () => ended(false),
    () => ended(true),
  );
  return new Response(through.readable, { status, headers });
}
