import type { Logger } from "pino";
import { MICROS_PER_MILLI, type Micros } from "#core/units.ts";
import { nowMicros } from "#live/clock.ts";
import { FleetKeeper } from "#live/discovery/fleet-keeper.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { KeeperEvent } from "#live/discovery/keeper-event.ts";
import type { EngineConnections } from "#live/tls/connections.ts";
import { BlockSize } from "#live/discovery/block-size.ts";
import { EndpointDirectory } from "#live/discovery/endpoint-directory.ts";
import { SourceBoard } from "#live/discovery/source-board.ts";
import { type Gateway, type GatewayOptions, createGateway } from "#live/gateway.ts";
import { RouterTap } from "#live/router-tap.ts";
import { GatewayMetrics } from "#live/metrics/metrics.ts";
import { Readiness } from "#live/status/readiness.ts";
import { PowerKeeper } from "#live/scrape/power-keeper.ts";
import { enginePages } from "#live/status/engine-pages.ts";
import { type StatusOptions, statusRoutes } from "#live/status/status.ts";
import { gnomonVersion } from "./gnomon-version.ts";
import type { HangWatch } from "#live/upstream/hang-watch.ts";
import { pageFiles } from "#live/status/page-files.ts";
import { warmUp } from "#live/warm-up/warm-up.ts";
import { warmUpPath } from "#live/warm-up/warm-up-path.ts";
import type { Config } from "#config/schema.ts";
import type { TraceRouter } from "#trace/record.ts";
import { liveKeys } from "./live-keys.ts";
import { type LiveTls, liveTls } from "./live-tls.ts";
import type { LiveShadow } from "./live-shadow.ts";
import { openTracing } from "./live-tracing.ts";
import { ForecastAccuracy } from "#live/metrics/forecast-accuracy.ts";
import { liveKvEvents } from "./live-kv-events.ts";
import { hangWatch } from "./live-hangs.ts";
import { faultOfKeeper, openLogs, requestObserver } from "./live-log.ts";
import { newRouter, routerSettings } from "./live-router.ts";
import { tokensOf } from "./secrets.ts";
import { lately } from "./lately.ts";
import { observers } from "./observers.ts";
import { replicaName, sharedRouter } from "./live-share.ts";
import type { RolloutKeeper } from "./rollout/rollout-keeper.ts";
import { liveState } from "./state/live-state.ts";
import { hashSecret } from "./state/hash-secret.ts";
import type { LivePolicy } from "./policy/live-policy.ts";
import { livePolicies } from "./policy/live-policies.ts";
import type { ServePlan } from "./serve-plan.ts";
import { settle } from "./settle.ts";
import { stateWatch } from "./state-watch.ts";
import { type Tokenizers, openTokenizers } from "./tokenizers.ts";
import { identity, towardsClients } from "./towards-clients.ts";
import { workersOf } from "./worker/workers-of.ts";
import { WorkerSigns } from "#live/worker/worker-signs.ts";

/** Everything that a running gateway is made of, and its end. */
export interface LiveStack {
  readonly tap: RouterTap;
  readonly gateway: Gateway;
  /** Watches nothing before it is started. */
  readonly policy: LivePolicy;
  /** Looks at nothing before it is begun. */
  readonly rollouts: RolloutKeeper;
  readonly keeper: FleetKeeper;
  readonly directory: EndpointDirectory;
  readonly readiness: Readiness;
  /** How the sources of endpoints stand; whoever follows one enters it here. */
  readonly sources: SourceBoard;
  /** Takes what happens to endpoints and their sources, for the log and for /readyz. */
  readonly report: (event: KeeperEvent) => void;
  /** Runs made-up requests, so that the first real ones meet compiled code. */
  warmUp(): Promise<void>;
  /** Drains, stops scraping, writes the trace to its end. */
  close(): Promise<void>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Puts a gateway together from its plan. It listens and knows endpoints only when they are added. */
export async function createLiveStack(given: ServePlan, environment: Environment, log: Logger): Promise<LiveStack> {
  const plan = { ...given, replica: replicaName(given.config) };
  const { config } = plan;
  const logs = openLogs(config.log, log);
  const { faults } = logs;
  const state = liveState(plan, faults);
  const secret = hashSecret(config, environment, state);
  const settings = routerSettings(state.inForce, state.policyVersion);
  const { router, tap, share } = sharedRouter(plan, settings, { faults, secret, state }, environment);
  const [directory, tls] = [new EndpointDirectory(), liveTls(config, faults.report)];
  const tracing = await openTracing(config, environment);
  const { tables } = plan;
  const tokenizers = await openTokenizers({ config, secret, directory, ...tls, log, environment, tables, ...settings });
  const blockSizes = followEngines(config, tokenizers, tap, faults);
  const { recorder, shadow, shadowStatus, search } = await observers(plan, settings, tap, faults);
  const [readiness, sources] = [new Readiness(directory), new SourceBoard()];
  const report = reporterOf(readiness, faults);
  const [power, hangs] = [startPower(config), hangWatch(config, tap, directory, faults)];
  const signs = new WorkerSigns(hangs);
  const keeper = newKeeper({ config, tap, directory, ...tls, report, power, blockSizes, hangs, shadow });
  const watch = stateWatch({ router, directory, keeper, settings, recorder, shadow, faults });
  const running: { gateway?: Gateway } = {};
  const workers = workersOf(config, tokenizers);
  const { counters, cascades } = countersOf(running);
  const policies = livePolicies({ plan, environment, tap, state, faults, share, gateway: () => running.gateway });
  const { policy, rollouts } = policies;
  const desks = { rollouts, autopilot: search?.attach(policies) };
  const counted = { counters, policy: policy.desk, recorder: () => recorder?.status(), tokenizers: workers.counts };
  const known = { router, tap, directory, keeper, hangs, sources, ...(share && { share: () => share.status() }) };
  const events = liveKvEvents({ config, secret, tap, directory, tokenizers, blockSizes, faults });
  const forecasts = new ForecastAccuracy(config.metrics.endpointsMax);
  const also = { forecasts, ...shadowStatus, ...events.metrics, ...workers.metrics, ...desks, cascades };
  const metrics = new GatewayMetrics({ ...known, logs: logs.counts, ...counted, ...also, ...config.metrics });
  const late = lately(config, tap);
  for (const listener of [forecasts, recorder, metrics]) if (listener !== undefined) tap.listen(listener);
  directory.listen(metrics);
  // Only now: what it gives the router must reach the recorder.
  rollouts.restore();
  const [tokens, keys] = [tokensOf(config, environment), liveKeys(config, environment, faults.report)];
  const shown = { ...known, ...late, ...tokens, ...events.status, policy: policy.desk, ...desks, metrics, readiness };
  const path = { identity: identity(config, secret, policy), tokenizer: tokenizers.of };
  const observe = requestObserver(metrics, late.traffic, logs);
  const own = createGateway({
    ...path,
    ...known,
    hangs: signs,
    observe,
    ...policy.models,
    ...towardsClients(state.inForce.config, tokens.adminToken, { ...ownTls(config, tls), ...tracing }),
    clientAuth: keys.auth,
    statusRoutes: pagesOf({ ...shown, blockSizes, ...shadowStatus, recount: workers.recount }),
  });
  const deciding = { ...known, config, secret, settings, signs, observe, report: faults.report };
  const gateway = workers.before(own, { ...deciding, policy });
  running.gateway = gateway;
  const close = async (): Promise<void> => {
    readiness.draining = true;
    await drain(gateway, config, environment, log);
    for (const part of [policies, share, power, keeper, events, keys, tls, tracing]) await part?.stop();
    for (const part of [recorder, shadow, tokenizers]) await part?.close();
    watch.stop();
    logs.close();
  };
  const warmUp = async (): Promise<void> => {
    // Read now, so that nobody who looks at the page waits for it.
    pageFiles();
    log.debug(await warmUpAll(plan, settings, path), "warmed up");
    await share?.start(policy.keeper.offer);
    readiness.warm = true;
  };
  return { tap, gateway, policy, rollouts, keeper, directory, readiness, sources, report, warmUp, close };
}

/** Where workers speak with clients, what they pass on comes over a socket of this machine. */
function ownTls({ listen }: Config, { connections, listenTls }: LiveTls): Pick<LiveTls, "connections" | "listenTls"> {
  return { connections, listenTls: listen.workers > 1 ? undefined : listenTls };
}

/** What a gateway counts, once there is one. */
function countersOf(running: { readonly gateway?: Gateway }) {
  return { counters: () => running.gateway?.counters, cascades: () => running.gateway?.parts.cascades };
}

function reporterOf(readiness: Readiness, faults: FaultLog): LiveStack["report"] {
  return (event) => {
    readiness.note(event);
    faults.report(faultOfKeeper(event));
  };
}

function pagesOf(status: Omit<StatusOptions, "version">): NonNullable<GatewayOptions["statusRoutes"]> {
  const version = gnomonVersion();
  return (app) => {
    statusRoutes({ ...status, version })(app);
    enginePages(status.readiness, version)(app);
  };
}

function startPower({ power }: Config): PowerKeeper {
  const keeper = new PowerKeeper({ ...power, now: nowMicros });
  keeper.start();
  return keeper;
}

function followEngines(
  { prefix }: Config,
  tokenizers: Tokenizers,
  tap: RouterTap,
  { report }: Pick<FaultLog, "report">,
): BlockSize {
  const change = (blockTokens: number, at: Micros): void => {
    tokenizers.resizeBlocks(blockTokens);
    tap.accept({ kind: "block-size-changed", at, blockTokens });
  };
  return new BlockSize({ configured: prefix.blockTokens, change, report });
}

/**
 * First the decision alone, then the whole path from socket to socket, each on a router that is thrown away and lets all in;
 * then the heap is settled.
 */
async function warmUpAll(
  { config }: ServePlan,
  recorded: TraceRouter,
  path: Pick<GatewayOptions, "identity" | "tokenizer">,
): Promise<object> {
  const { warmUpMillis: budgetMillis } = config.listen;
  if (budgetMillis === 0) {
    settle();
    return { requests: 0 };
  }
  const { admission: _, ...settings } = recorded;
  const { blockTokens } = settings;
  const profiles = Object.keys(settings.profiles);
  const decisions = await warmUp({ tap: new RouterTap(newRouter(settings)), profiles, blockTokens, budgetMillis });
  // Kind vllm would ask the engines about made-up prompts.
  if (config.tokenizer.kind === "vllm") {
    settle();
    return decisions;
  }
  const tap = new RouterTap(newRouter(settings));
  const { continueStreams: continuesStreams } = config.clients;
  const options = { ...path, continuesStreams, tap, budgetMillis, whileUnderWay: settle };
  return { ...decisions, requests: await warmUpPath(options) };
}

async function drain(gateway: Gateway, config: Config, environment: Environment, log: Logger): Promise<void> {
  const since = nowMicros();
  const drained = await gateway.close(config.listen.drainMillis, drainNoticeMillis(config, environment));
  const millis = Math.round((nowMicros() - since) / MICROS_PER_MILLI);
  log.info({ event: "drained", millis, ...drained }, "drained");
}

/** A pod stays among its service's endpoints for a moment after it was asked to stop. */
export function drainNoticeMillis({ listen }: Config, environment: Environment): number {
  return listen.drainNoticeMillis ?? (environment["KUBERNETES_SERVICE_HOST"] === undefined ? 0 : POD_NOTICE_MILLIS);
}

const POD_NOTICE_MILLIS = 5_000;

interface KeeperParts {
  readonly connections: EngineConnections;
  readonly config: Config;
  readonly tap: RouterTap;
  readonly directory: EndpointDirectory;
  readonly report: (event: KeeperEvent) => void;
  readonly power: PowerKeeper;
  readonly blockSizes: BlockSize;
  readonly hangs: HangWatch;
  readonly shadow: LiveShadow | undefined;
}

function newKeeper({
  config,
  tap,
  directory,
  connections,
  report,
  power,
  blockSizes,
  hangs,
  shadow,
}: KeeperParts): FleetKeeper {
  const { intervalMillis, timeoutMillis, staleAfterMillis: _, ...times } = config.scrape;
  const keeper = new FleetKeeper({
    tap,
    directory,
    times: { ...times, scrapeIntervalMillis: intervalMillis, scrapeTimeoutMillis: timeoutMillis },
    connectMillis: config.limits.connectMillisMax,
    report,
    blockSizes,
    connections,
    probes: hangs,
    healthPath: config.health.path,
    ...(config.health.check.enabled && { healthChecks: config.health.check }),
    ...(config.power.exporters.length === 0 ? {} : { hardwareOf: power.of.bind(power) }),
  });
  shadow?.feeds(keeper);
  return keeper;
}
