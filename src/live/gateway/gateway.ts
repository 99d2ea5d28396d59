import { addRoutes, type AdministrationOptions, type GatewayApp, type RouteShared } from "./gateway-routes.ts";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { AnswerIndexer } from "../answer/answer-indexer.ts";
import { type AnswerChooser, chooseAnswer } from "../answer/choose-answer.ts";
import type { AnswersIndexed } from "../answer/choose-reader.ts";
import { giveUpRefusal } from "../answer/faults.ts";
import type { RequestObserver } from "../log/request-observer.ts";
import type { BesideShared } from "../beside/beside-request.ts";
import type { RequestSpans } from "../tracing/request-spans.ts";
import { ANYBODY } from "../http/client.ts";
import { type ClientAuth, ClientKeys, plainKeys } from "../http/client-auth.ts";
import { type Drained, drainGateway } from "./drain-gateway.ts";
import { ClientConnections } from "./client-connections.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import { type GatewayCounters, newCounters } from "../base/gateway-counters.ts";
import { FirstReads } from "../first-reads.ts";
import { GatewayMessage } from "../http/request-body.ts";
import type { Refusal } from "../http/errors.ts";
import { answerHttpFaults } from "../http/http-faults.ts";
import { Identifier, type IdentityOptions } from "../http/identity.ts";
import { isHostClear, malformedTarget, refuseHost } from "../request/request-target.ts";
import { InFlight } from "../http/in-flight.ts";
import { Pipelines } from "../request/pipelines.ts";
import { UnreadAnswers, watchUnread } from "../answer/unread-answers.ts";
import { KnownBodies } from "../request/known-bodies.ts";
import { type DoorShared, InferenceDoor, trustedProxies } from "../inference/inference-door.ts";
import type { Intake } from "../base/intake.ts";
import { AS_ASKED, type ChoiceInForce } from "../routing/ask.ts";
import { RequestRouter } from "../routing/request-router.ts";
import { openJudges, type StageJudges, stagePerformers, type StageSections } from "../stage-performers.ts";
import { BodyRoom } from "../http/body-room.ts";
import { bodyRules, DEFAULT_LIMITS, type GatewayLimits, waitLimits } from "../http/limits.ts";
import { OpenFiles, type OpenFilesOptions } from "./open-files.ts";
import type { WaitLimits } from "#core/path/wait-verdict.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { EngineName } from "#core/engine-names.ts";
import { EngineFields } from "../request/engine-body.ts";
import { EngineCaller } from "../beside/engine-caller.ts";
import { ServingChecks } from "../beside/serving-checks.ts";
import { TokenTexts } from "../beside/token-texts.ts";
import { StoredResponses } from "../beside/stored-responses.ts";
import { Cors } from "../http/cors.ts";
import { Routes } from "../http/route.ts";
import { SloRules, type SloRulesOptions } from "../request/slo-rules.ts";
import type { AttemptWatch } from "../keeper/attempt-watch.ts";
import { HangDetector } from "../keeper/hang-detector.ts";
import type { Tokenizer } from "../tokenizer/text/tokenizer.ts";
import { EngineConnections } from "../tls/connections.ts";
import { secureServer, type ServerTls } from "./secure-server.ts";
import { UpstreamPools } from "../upstream/connection/upstream-pools.ts";
import { Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { stageSettings } from "#core/stages.ts";

/** What all requests share. */
export type GatewayShared = DoorShared &
  BesideShared &
  RouteShared & {
    readonly judges: StageJudges | undefined;
    readonly pools: UpstreamPools;
    readonly openFiles: OpenFiles;
    readonly connections: ClientConnections;
    /** Those in force; a request keeps the ones that it came under. */
    limits: GatewayLimits;
    waits: WaitLimits;
    /** leaving: it will end soon, so every answer ends its connection. draining: also no requests of new connections. */
    phase: "serving" | "leaving" | "draining";
  };

export interface GatewayOptions extends Pick<OpenFilesOptions, "filesMax"> {
  readonly intake: Intake;
  /** Judges which endpoints hang; one of its own when left out. */
  readonly hangs?: AttemptWatch;
  readonly directory: EndpointDirectory;
  /** The tokenizer for a model as the client named it. */
  readonly tokenizer: (model: string) => Tokenizer;
  readonly observe: RequestObserver;
  readonly identity: IdentityOptions;
  /** What requests are promised beside what they state themselves; nothing when left out. */
  readonly slo?: SloRulesOptions;
  readonly limits?: Partial<GatewayLimits>;
  /** Bearer tokens that clients must send; none lets everybody in and passes their Authorization on to the engines. */
  readonly clientKeys?: readonly string[];
  /** The same with whose they are, in their place. */
  readonly clientAuth?: ClientAuth | undefined;
  /** Asks engines for usage in every stream, and keeps the chunk that this adds from clients that did not ask. */
  readonly requestUsage?: boolean;
  /** Which answers go into the prefix index; "ids" when left out. */
  readonly answersIndexed?: AnswersIndexed;
  /** Profiles and models of requests, as they are now; those that requests ask for when left out. */
  readonly inForce?: ChoiceInForce;
  /** What stages are set by beside limits; nothing when left out. */
  readonly stages?: StageSections;
  /** Headers that state how long a client waits, in lower case; none when left out. */
  readonly timeoutHeaders?: readonly string[];
  /** Addresses and networks of proxies whose tenant header counts whatever the key; none when left out. */
  readonly trustedProxies?: readonly string[];
  /** Names of engines' own fields and headers that clients may send; none when left out. */
  readonly engineFields?: readonly EngineName[];
  /** TLS towards clients; plain HTTP when left out. */
  readonly listenTls?: ServerTls | undefined;
  /** How engines are connected to; with Node's roots when left out. */
  readonly connections?: EngineConnections;
  /** Spans of requests; none when left out. */
  readonly spans?: RequestSpans | undefined;
  /** Whether work that can be left undone is; it never is when left out. */
  readonly load?: { readonly isBusy: boolean };
  /** Paths beside the known ones that take POST and go to one engine each. */
  readonly extraRoutes?: readonly string[];
  /** Engines' administration that passes; none when left out. */
  readonly administration?: AdministrationOptions;
  /** Whether answers carry x-gnomon-* headers; they do when left out. */
  readonly sendsOwnHeaders?: boolean;
  /** Origins whose pages may call, "*" for any; none leaves that to the engines. */
  readonly corsOrigins?: readonly string[];
  /** Another router takes all requests and has its answers carried back as they are; none when left out. */
  readonly passThrough?: PassThrough | undefined;
  /** Mounts what probes, scrapers and load balancers ask for, on both ports. */
  readonly openRoutes?: (app: GatewayApp) => void;
  /** Mounts status pages and administration, on the administrative port alone. */
  readonly adminRoutes?: (app: GatewayApp) => void;
}

/** What a gateway does in front of another router. */
export interface PassThrough {
  readonly answerOf: AnswerChooser;
  /** What the client gets where the other router did not answer. */
  readonly refusalOf: (fault: Fault) => Refusal;
  /** Requests do not come to this gateway's own port; whoever tries gets what `serve` answers. */
  readonly isElsewhere: boolean;
  /** Serves, on the port for clients, all that is no inference. */
  readonly serve: (incoming: IncomingMessage, outgoing: ServerResponse, shared: RouteShared) => void;
}

export interface Gateway {
  /** Of the port for clients. */
  readonly app: GatewayApp;
  /** Of the port for operators. */
  readonly admin: GatewayApp;
  /** What its requests share, for another host of the same router. */
  readonly shared: GatewayShared;
  readonly routes: Routes;
  readonly counters: GatewayCounters;
  /** Those in force. */
  readonly limits: GatewayLimits;
  /** Other limits for requests that come from now on; those that sockets and timers were made with stay. */
  changeLimits(limits: Partial<GatewayLimits>): void;
  /** Requests between their head and their last byte. */
  inFlight(): number;
  /** Rejects with the socket's error when the address cannot be had. Port 0 takes a free one. */
  listen(host: string, port: number): Promise<{ readonly url: string }>;
  /** The same for status pages and administration, which the other port does not have. */
  listenAdmin(host: string, port: number): Promise<{ readonly url: string }>;
  /**
   * Goes on taking requests for `noticeMillis`, while load balancers learn that it leaves. Then refuses those of new
   * connections, ends connections that are idle for `idleMillis`, waits for requests in flight at most `graceMillis` and
   * cuts them off. All else is served until then.
   */
  close(graceMillis: number, noticeMillis?: number, idleMillis?: number): Promise<Drained>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const limits: GatewayLimits = { ...DEFAULT_LIMITS, ...options.limits };
  const counters = newCounters();
  const connections = options.connections ?? new EngineConnections();
  const pools = new UpstreamPools(limits, connections);
  options.directory.listen(pools);
  const { intake, directory, hangs = new HangDetector({ intake, directory }) } = options;
  const { spans: watch } = options;
  const router = new RequestRouter({ intake, settings: stageSettings(limits), counters, watch });
  const answers = new AnswerIndexer({
    router,
    counters,
    waitingMax: limits.answersWaitingMax,
    load: options.load ?? { isBusy: false },
    bug: (error) => options.observe.bug?.(error),
  });
  const caller = new EngineCaller(() => shared.limits, limits.connectMillisMax, connections, directory);
  const responses = new StoredResponses({ directory, caller, counters });
  const serving = new ServingChecks(caller, counters);
  const tokenTexts = new TokenTexts(caller);
  const shared = sharedOf(options, { router, pools, limits, counters, hangs, answers, responses, serving, tokenTexts });
  const app: GatewayApp = new Hono();
  const admin: GatewayApp = new Hono();
  for (const each of [app, admin]) options.openRoutes?.(each);
  options.adminRoutes?.(admin);
  const allowed = authOf(options) ?? (() => ANYBODY);
  const routes = new Routes(options.extraRoutes);
  const door = new InferenceDoor(shared, allowed, routes, trustedProxies(options.trustedProxies ?? []));
  addRoutes({ app, admin, shared, allowed, door, routes, caller, administration: options.administration });
  const server = newServer(app, shared, options, door);
  const adminServer = newServer(admin, shared, options);
  const firstReads = new FirstReads();
  for (const each of [server, adminServer]) {
    firstReads.follow(each);
    shared.openFiles.guard(each);
    watchUnread(each, shared.unread);
    shared.connections.follow(each);
  }
  return {
    app,
    admin,
    shared,
    routes,
    counters,
    get limits() {
      return shared.limits;
    },
    changeLimits: (changed) => {
      shared.limits = { ...DEFAULT_LIMITS, ...changed };
      shared.waits = waitLimits(shared.limits);
      shared.bodies.rules = bodyRules(shared.limits);
      shared.unread.bytesMax = shared.limits.answerBytesUnreadMax;
      router.change(stageSettings(shared.limits));
      for (const each of [server, adminServer]) limitServer(each, shared.limits);
    },
    inFlight: () => shared.inFlight.size,
    listen: (host, port) => listen(server, host, port),
    listenAdmin: (host, port) => listen(adminServer, host, port),
    close: async (graceMillis, noticeMillis = 0, idleMillis = idleAfter(noticeMillis)) => {
      const drained = await drainGateway([server, adminServer], shared, { graceMillis, noticeMillis, idleMillis });
      answers.close();
      shared.openFiles.stop();
      router.stop();
      await caller.destroy();
      return drained;
    },
  };
}

/**
 * A client that sends its next request as soon as it has an answer does so within half a second, also from afar. Where it
 * is given notice of the end there is time for those that pause.
 */
function idleAfter(noticeMillis: number): number {
  return noticeMillis > 0 ? 2_000 : 500;
}

function authOf({ clientAuth, clientKeys }: GatewayOptions): ClientAuth | undefined {
  return clientAuth ?? (clientKeys === undefined ? undefined : new ClientKeys(plainKeys(clientKeys)).of);
}

type OwnShared = Pick<
  GatewayShared,
  "router" | "pools" | "limits" | "counters" | "hangs" | "answers" | "responses" | "serving" | "tokenTexts"
>;

/** Of one shape whatever the options, so that code optimized for the warm-up's gateway serves this one too. */
function sharedOf(options: GatewayOptions, own: OwnShared): GatewayShared {
  const { limits, hangs } = own;
  return {
    ...own,
    directory: options.directory,
    tokenizer: options.tokenizer,
    openFiles: new OpenFiles(options, own.counters.outOfFiles),
    connections: new ClientConnections(),
    spans: options.spans,
    observe: options.spans?.observing(options.observe) ?? options.observe,
    identifier: new Identifier(options.identity),
    slo: new SloRules(options.slo),
    judges: openJudges(options.stages ?? {}, own.router),
    performers: stagePerformers(options.stages ?? {}),
    answerOf: options.passThrough?.answerOf ?? chooseAnswer,
    refusalOf: options.passThrough?.refusalOf ?? giveUpRefusal,
    passesUnread: options.passThrough !== undefined,
    waits: waitLimits(limits),
    answersIndexed: options.answersIndexed ?? "ids",
    inForce: options.inForce ?? AS_ASKED,
    requestUsage: options.requestUsage ?? false,
    knownBodies: new KnownBodies(own.counters.knownBodies),
    timeoutHeaders: options.timeoutHeaders ?? [],
    engineFields: new EngineFields(options.engineFields),
    keepsAuthorization: authOf(options) !== undefined,
    sendsOwnHeaders: options.sendsOwnHeaders ?? true,
    cors: (options.corsOrigins ?? []).length === 0 ? undefined : new Cors(options.corsOrigins ?? []),
    inFlight: new InFlight(limits.sweepMillis, hangs),
    bodies: new BodyRoom(bodyRules(limits)),
    unread: new UnreadAnswers(limits.answerBytesUnreadMax, () => own.counters.unreadCut++),
    sequence: 0,
    phase: "serving",
  };
}

/**
 * The server's own limits bound the receiving of a request; a long answer is not touched by them. Clients' sockets send
 * small packets at once.
 */
function newServer(
  app: GatewayApp,
  shared: GatewayShared,
  { listenTls: tls, passThrough }: Pick<GatewayOptions, "listenTls" | "passThrough">,
  door?: InferenceDoor,
): Server {
  const { limits, counters, inFlight } = shared;
  const pipelines = new Pipelines({
    waitingMax: () => shared.limits.pipelinedRequestsMax,
    waitingOfAllMax: () => shared.limits.requestsInFlightMax,
    cut: () => counters.pipelinesCut++,
  });
  const listener = getRequestListener(app.fetch, {
    hostname: "gateway.invalid",
    errorHandler: () => malformedTarget(shared.sendsOwnHeaders),
  });
  const isElsewhere = passThrough?.isElsewhere === true;
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (shared.phase !== "serving") shared.connections.answers(outgoing);
    // Without a version it is HTTP/0.9, which has neither hosts nor bodies.
    if (incoming.httpVersionMajor < 1) refuseHost(outgoing, shared.sendsOwnHeaders);
    else if (isElsewhere && door !== undefined) passThrough?.serve(incoming, outgoing, shared);
    else if (door?.takes(incoming) === true) door.serve(incoming, outgoing);
    else if (!isHostClear(incoming)) refuseHost(outgoing, shared.sendsOwnHeaders);
    else if (door !== undefined && passThrough !== undefined) {
      if (incoming.method !== "POST" || !door.serve(incoming, outgoing)) passThrough.serve(incoming, outgoing, shared);
    } else void listener(incoming, outgoing);
  };
  const bounds = {
    IncomingMessage: GatewayMessage,
    noDelay: true,
    headersTimeout: limits.headersMillisMax,
    connectionsCheckingInterval: Math.min(CHECK_MILLIS_MAX, Math.ceil(limits.headersMillisMax / CHECKS_PER_LIMIT)),
    // Node's own refusal has no body.
    requireHostHeader: false,
  };
  const failed = (): void => void counters.handshakesFailed++;
  const inTurn = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    // Node gives a response its socket once the one before it is written.
    if (outgoing.socket !== null) serve(incoming, outgoing);
    else pipelines.wait(incoming, outgoing, serve);
  };
  const server = tls === undefined ? createServer(bounds, inTurn) : secureServer(tls, bounds, inTurn, failed);
  limitServer(server, limits);
  server.on("drop", () => counters.connectionsDropped++);
  answerHttpFaults(server, {
    serve: inTurn,
    bodyBytesMax: () => shared.limits.bodyBytesMax,
    answering: (socket) => inFlight.answering(socket),
    endBehind: (socket) => pipelines.endBehind(socket),
    sendsOwnHeaders: shared.sendsOwnHeaders,
    malformed: () => counters.malformedHttp++,
  });
  return server;
}

/** Sockets that are open meet these at their next request. */
function limitServer(server: Server, limits: GatewayLimits): void {
  server.keepAliveTimeout = limits.clientKeepAliveMillis;
  server.requestTimeout = limits.requestReadMillisMax;
  server.maxConnections = limits.clientConnectionsMax;
}

/** Node looks only every 30 s for requests that are too slow, which a shorter limit would not notice. */
const CHECK_MILLIS_MAX = 5_000;
const CHECKS_PER_LIMIT = 4;

/** Rejects with the socket's error when the address cannot be had. */
function listen(server: Server, host: string, port: number): Promise<{ url: string }> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host }, () => {
      server.removeListener("error", reject);
      const { address, port: taken, family } = server.address() as AddressInfo;
      const scheme = server instanceof SecureServer ? "https" : "http";
      resolve({ url: `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${taken}` });
    });
  });
}
