import { createHmac } from "node:crypto";
import type { Config } from "#config/schema.ts";
import { type Slo, sloWith } from "#core/request/slo.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import { type GatewayOptions, createGateway } from "#live/gateway/gateway.ts";
import { LoopLoad } from "#live/base/loop-load.ts";
import type { IdentityOptions } from "#live/http/identity.ts";
import type { SloRulesOptions } from "#live/request/slo-rules.ts";
import { tokenAccess } from "#live/admin/admin-access.ts";
import type { LiveTracing } from "../observe/live-tracing.ts";
import type { LiveTls } from "./live-tls.ts";
import { gatewayLimits, type LivePolicy } from "../policy/live-policy.ts";
import { part } from "../assembly/part.ts";
import type { Environment, GatewayContext } from "../plan/gateway-context.ts";
import type { ServePlan } from "../plan/serve-plan.ts";
import type { GatewayMetrics } from "#live/metrics/metrics.ts";
import type { StatusOptions } from "#live/status/status.ts";
import type { Readiness } from "#live/status/readiness.ts";
import { type LiveLogs, requestObserver } from "../observe/live-log.ts";
import type { GatewayCounts } from "../observe/live-metrics.ts";
import type { LiveFront } from "../tap/live-tap.ts";
import type { LiveKeys } from "./live-keys.ts";
import type { Tokens } from "../process/secrets.ts";

/** Where who asks is looked for. */
function identity(
  { clients }: Config,
  secret: Uint8Array,
  { inForce, workloads }: Pick<LivePolicy, "inForce" | "workloads">,
): IdentityOptions {
  return {
    tenantHeaders: clients.tenantHeaders,
    sessionHeaders: clients.sessionHeaders,
    inForce,
    sloHeaders: [...workloads.objectiveHeaders, clients.sloClassHeader],
    secret: createHmac("sha256", secret).update("identity").digest("hex"),
  };
}

function sloRules({ classes, tenants, models }: Config["slo"]): SloRulesOptions {
  const micros = (millis: number | undefined) =>
    millis === undefined ? undefined : Math.max(1, Math.round(millis * MICROS_PER_MILLI));
  const promised = Object.entries(classes).map(([name, { ttftMillis, tpotMillis }]): [string, Slo] => [
    name,
    sloWith(micros(ttftMillis), micros(tpotMillis)) ?? {},
  ]);
  return { classes: Object.fromEntries(promised), tenants, models };
}

/** What the configuration states of clients, and what it lets pass; how both sides are spoken to. */
function towardsClients(
  config: Config,
  adminToken: string | undefined,
  ways: Pick<LiveTls, "connections" | "listenTls"> & Pick<LiveTracing, "spans">,
  keeper: Pick<FleetKeeper, "administered">,
): Partial<GatewayOptions> {
  const { clients, routes, prefix } = config;
  return {
    stages: config,
    slo: sloRules(config.slo),
    connections: ways.connections,
    listenTls: ways.listenTls,
    ...(ways.spans && { spans: ways.spans }),
    answersIndexed: prefix.answers,
    load: new LoopLoad(),
    limits: gatewayLimits(config),
    timeoutHeaders: clients.timeoutHeaders,
    engineFields: clients.engineFields,
    trustedProxies: clients.trustedProxies,
    requestUsage: clients.requestUsage,
    sendsOwnHeaders: clients.ownHeaders,
    corsOrigins: clients.corsOrigins,
    extraRoutes: routes.extra,
    administration: {
      paths: routes.administration,
      access: tokenAccess(adminToken),
      millisMax: routes.administrationMillisMax,
      done: keeper.administered.bind(keeper),
    },
  };
}

export const identityPart = part({
  name: "identity",
  needs: ["plan", "secret", "policy"],
  start: ({
    plan,
    secret,
    policy,
  }: Pick<GatewayContext, "plan"> & { readonly secret: Uint8Array; readonly policy: LivePolicy }) =>
    identity(plan.config, secret, policy),
});

interface Needed extends Omit<GatewayContext, "logLinesDropped"> {
  readonly state: { readonly inForce: ServePlan };
  readonly identity: IdentityOptions;
  readonly tokenizers: { readonly of: GatewayOptions["tokenizer"] };
  readonly front: LiveFront;
  readonly metrics: GatewayMetrics;
  readonly lately: Pick<StatusOptions, "traffic">;
  readonly logs: LiveLogs;
  readonly policy: LivePolicy;
  readonly tls: LiveTls;
  readonly tracing: LiveTracing;
  readonly keeper: FleetKeeper;
  readonly keys: LiveKeys;
  readonly tokens: Tokens;
  readonly pages: Pick<GatewayOptions, "openRoutes" | "adminRoutes">;
  readonly counts: GatewayCounts;
  readonly readiness: Readiness;
  /** Nothing is routed before. */
  readonly restored: unknown;
}

/** Takes requests from clients and gives them to engines. */
export const gatewayPart = part({
  name: "gateway",
  needs: [
    "plan",
    "environment",
    "log",
    "leaving",
    "state",
    "identity",
    "tokenizers",
    "front",
    "metrics",
    "lately",
    "logs",
    "policy",
    "tls",
    "tracing",
    "keeper",
    "keys",
    "tokens",
    "pages",
    "counts",
    "readiness",
    "restored",
  ],
  start: ({ state, tokenizers, metrics, lately, logs, policy, tls, tracing, keeper, tokens, ...parts }: Needed) => {
    const { front, keys, pages, counts } = parts;
    const { intake, directory, hangs, options, limits } = front;
    const towards = towardsClients(state.inForce.config, tokens.adminToken, { ...tls, ...tracing }, keeper);
    const gateway = createGateway({
      identity: parts.identity,
      tokenizer: front.tokenizer(tokenizers.of),
      intake,
      directory,
      ...(hangs && { hangs }),
      observe: requestObserver(metrics, lately.traffic, logs),
      inForce: policy.inForce,
      ...towards,
      clientAuth: keys.auth,
      ...pages,
      ...options,
      limits: { ...towards.limits, ...limits },
    });
    counts.gateway = gateway;
    return gateway;
  },
  settings: ["limits"],
  change: (gateway, { config }, { front }) => gateway.changeLimits({ ...gatewayLimits(config), ...front.limits }),
  drain: async (gateway, { plan, environment, log, leaving, readiness }) => {
    const { drainMillis } = plan.config.listen;
    const drainNoticeMillis = noticeMillis(plan.config, environment);
    readiness.draining = true;
    const begun = { signal: leaving.reason as unknown, requestsInFlight: gateway.inFlight() };
    log.info({ event: "draining", ...begun, drainNoticeMillis, drainMillis }, "draining");
    const since = performance.now();
    const drained = await gateway.close(drainMillis, drainNoticeMillis);
    log.info({ event: "drained", millis: Math.round(performance.now() - since), ...drained }, "drained");
  },
});

/** A pod stays among its service's endpoints for a moment after it was asked to stop. */
export function noticeMillis({ listen }: Config, environment: Environment): number {
  return listen.drainNoticeMillis ?? (environment["KUBERNETES_SERVICE_HOST"] === undefined ? 0 : POD_NOTICE_MILLIS);
}

const POD_NOTICE_MILLIS = 5_000;
