import type { Logger } from "pino";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import { nowMicros } from "#live/base/clock.ts";
import { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { KeeperEvent } from "#live/endpoints/keeper-event.ts";
import type { EngineConnections } from "#live/tls/connections.ts";
import { BlockSize } from "#live/endpoints/block-size.ts";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { SourceBoard } from "#live/endpoints/source-board.ts";
import { type Gateway, type GatewayOptions, createGateway } from "#live/gateway/gateway.ts";
import type { RouterTap } from "#live/base/router-tap.ts";
import { GatewayMetrics } from "#live/metrics/metrics.ts";
import type { RecorderStatus } from "#live/recorder/recorder.ts";
import { Readiness } from "#live/status/readiness.ts";
import { PowerKeeper } from "#live/scrape/power-keeper.ts";
import { openPages } from "#live/status/open-pages.ts";
import { type StatusOptions, statusRoutes } from "#live/status/status.ts";
import { gnomonVersion } from "./process/gnomon-version.ts";
import type { HangWatch } from "#live/keeper/hang-watch.ts";
import type { Config } from "#config/schema.ts";
import { liveKeys } from "./clients/live-keys.ts";
import { liveTls } from "./clients/live-tls.ts";
import type { LiveShadow } from "./observe/live-shadow.ts";
import { openTracing } from "./observe/live-tracing.ts";
import { ForecastAccuracy } from "#live/metrics/forecast-accuracy.ts";
import { liveKvEvents } from "./tokens/live-kv-events.ts";
import { hangWatch } from "./endpoints/live-hangs.ts";
import { faultOfKeeper, type LiveLogs, openLogs, requestObserver } from "./observe/live-log.ts";
import { routerSettings } from "./policy/live-router.ts";
import { type Scraped, withScrape } from "./policy/live-scrape.ts";
import { tokensOf } from "./process/secrets.ts";
import { lately } from "./observe/lately.ts";
import { observers } from "./observe/observers.ts";
import { replicaName, sharedRouter } from "./live-share.ts";
import type { RolloutKeeper } from "./rollout/rollout-keeper.ts";
import { liveState } from "./policy/live-state.ts";
import { hashSecret } from "./policy/hash-secret.ts";
import type { LivePolicy } from "./policy/live-policy.ts";
import { livePolicies } from "./live-policies.ts";
import type { ServePlan } from "./plan/serve-plan.ts";
import { stateWatch } from "./observe/state-watch.ts";
import { type Tokenizers, openTokenizers } from "./tokens/tokenizers.ts";
import { identity, towardsClients } from "./clients/towards-clients.ts";
import { warmUpAll } from "./warm-up-all.ts";

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
  readonly faults: FaultLog;
  /** Takes what happens to endpoints and their sources, for the log and for /readyz. */
  readonly report: (event: KeeperEvent) => void;
  /** Runs made-up requests, so that the first real ones meet compiled code. */
  warmUp(): Promise<void>;
  /** Drains, stops scraping, writes the trace to its end. */
  close(): Promise<void>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Puts a gateway together from its plan, from the decision outwards. It listens and knows endpoints only when they are
 * added.
 */
export async function createLiveStack(given: ServePlan, environment: Environment, log: Logger): Promise<LiveStack> {
  const plan = { ...given, replica: replicaName(given.config) };
  const { config, tables } = plan;
  const logs = openLogs(config.log, log);
  const { faults } = logs;

  // The decision, and what of it outlives a restart.
  const state = withScrape(liveState(plan, faults), log, faults);
  const secret = hashSecret(config, environment, state);
  const settings = routerSettings(state.inForce, state.policyVersion);
  const { router, tap, share } = sharedRouter(plan, settings, { faults, secret, state }, environment);

  // Prompts: which tokens and blocks they are.
  const directory = new EndpointDirectory();
  const tls = liveTls(config, faults.report);
  const tracing = await openTracing(config, environment);
  const tokenizers = await openTokenizers({ config, secret, directory, ...tls, log, environment, tables, ...settings });
  const blockSizes = followEngines(config, tokenizers, tap, faults);

  // Who sees every input: recorder and shadow.
  const { recorder, shadow, shadowStatus, search } = await observers(plan, settings, tap, faults, state);

  // Endpoints: which there are, what they report, which hang.
  const readiness = new Readiness(directory);
  const sources = new SourceBoard();
  const report = reporterOf(readiness, faults);
  const power = startPower(config);
  const hangs = hangWatch(config, tap, directory, faults);
  hangs.start();
  const keeper = newKeeper({ config, tap, directory, ...tls, report, power, blockSizes, hangs, shadow, state });
  const watch = stateWatch({ router, directory, keeper, settings, recorder, shadow, faults });

  // What may change while it runs: the policy, and rollouts.
  const running: { gateway?: Gateway } = {};
  const policies = livePolicies({ plan, environment, tap, state, faults, share, gateway: () => running.gateway });
  const { policy, rollouts } = policies;
  const desks = { rollouts, autopilot: search?.attach(policies) };

  // What engines report of their caches.
  const events = liveKvEvents({ config, secret, tap, directory, tokenizers, blockSizes, faults });

  // What it shows: metrics, status pages, logs.
  const parts = { router, tap, directory, keeper, hangs, sources, ...(share && { share: () => share.status() }) };
  const forecasts = new ForecastAccuracy(config.metrics.endpointsMax);
  const counts = countsOf({ running, logs, tokenizers, recorder });
  const { folder } = state;
  const orders = folder && (() => folder.orders.status);
  const measured = { forecasts, orders, ...shadowStatus, ...events.metrics, ...desks };
  const metrics = new GatewayMetrics({ ...parts, ...counts, policy: policy.desk, ...measured, ...config.metrics });
  const late = lately(config, tap);
  for (const listener of [forecasts, recorder, metrics]) if (listener !== undefined) tap.listen(listener);
  directory.listen(metrics);
  // Only now: what it gives the router must reach the recorder.
  rollouts.restore();
  const tokens = tokensOf(config, environment);
  const keys = liveKeys(config, environment, faults.report);
  const pages = { ...parts, ...late, ...tokens, ...events.status, policy: policy.desk, ...desks, metrics, readiness };

  // The gateway.
  const path = { identity: identity(config, secret, policy), tokenizer: tokenizers.of };
  const observe = requestObserver(metrics, late.traffic, logs);
  const gateway = createGateway({
    ...path,
    ...parts,
    observe,
    ...policy.models,
    ...towardsClients(state.inForce.config, tokens.adminToken, { ...tls, ...tracing }, keeper),
    clientAuth: keys.auth,
    ...pagesOf({ ...pages, blockSizes, ...shadowStatus }),
  });
  running.gateway = gateway;

  const close = async (): Promise<void> => {
    await drain({ gateway, readiness, config, environment, log });
    for (const part of [policies, share, power, keeper, events, keys, tls, tracing]) await part?.stop();
    for (const part of [recorder, shadow, tokenizers]) await part?.close();
    watch.stop();
    hangs.stop();
    logs.close();
  };
  const warmUp = async (): Promise<void> => {
    log.debug(await warmUpAll(plan, settings, path), "warmed up");
    await share?.start(policy.keeper.offer);
    await Promise.all([policy.caughtUp(), rollouts.caughtUp()]);
    readiness.warm = true;
  };
  return { tap, gateway, policy, rollouts, keeper, directory, readiness, sources, faults, report, warmUp, close };
}

interface Counting {
  /** Its gateway, once there is one. */
  readonly running: { readonly gateway?: Gateway };
  readonly logs: Pick<LiveLogs, "counts">;
  readonly tokenizers: Pick<Tokenizers, "counts">;
  readonly recorder: { status(): RecorderStatus } | undefined;
}

/** What its parts count by themselves. */
function countsOf({ running, logs, tokenizers, recorder }: Counting) {
  return {
    counters: () => running.gateway?.counters,
    cascades: () => running.gateway?.parts.cascades,
    logs: logs.counts,
    tokenizers: tokenizers.counts,
    recorder: () => recorder?.status(),
  };
}

function reporterOf(readiness: Readiness, faults: FaultLog): LiveStack["report"] {
  return (event) => {
    readiness.note(event);
    faults.report(faultOfKeeper(event));
  };
}

function pagesOf(status: Omit<StatusOptions, "version">): Pick<GatewayOptions, "openRoutes" | "adminRoutes"> {
  const version = gnomonVersion();
  return { openRoutes: openPages({ ...status, version }), adminRoutes: statusRoutes({ ...status, version }) };
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

interface Draining extends Pick<LiveStack, "gateway" | "readiness"> {
  readonly config: Config;
  readonly environment: Environment;
  readonly log: Logger;
}

async function drain({ gateway, readiness, config, environment, log }: Draining): Promise<void> {
  readiness.draining = true;
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
  readonly state: Pick<Scraped, "scrapeMillis">;
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
  state,
}: KeeperParts): FleetKeeper {
  const { intervalMillis: _given, timeoutMillis, staleAfterMillis: _stale, ...times } = config.scrape;
  const keeper = new FleetKeeper({
    tap,
    directory,
    times: { ...times, scrapeIntervalMillis: state.scrapeMillis, scrapeTimeoutMillis: timeoutMillis },
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
