import { createHmac } from "node:crypto";
import type { Config } from "#config/schema.ts";
import { type Slo, sloWith } from "#core/request/slo.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { GatewayOptions } from "#live/gateway/gateway.ts";
import { LoopLoad } from "#live/base/loop-load.ts";
import type { IdentityOptions } from "#live/http/identity.ts";
import type { SloRulesOptions } from "#live/request/slo-rules.ts";
import { tokenAccess } from "#live/admin/admin-access.ts";
import type { LiveTracing } from "../observe/live-tracing.ts";
import type { LiveTls } from "./live-tls.ts";
import { gatewayLimits, type LivePolicy } from "../policy/live-policy.ts";

/** Where who asks is looked for. */
export function identity(
  { clients }: Config,
  secret: Uint8Array,
  { profileHeader, workloads }: Pick<LivePolicy, "profileHeader" | "workloads">,
): IdentityOptions {
  return {
    tenantHeaders: clients.tenantHeaders,
    sessionHeaders: clients.sessionHeaders,
    get profileHeader() {
      return profileHeader();
    },
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
export function towardsClients(
  config: Config,
  adminToken: string | undefined,
  ways: Pick<LiveTls, "connections" | "listenTls"> & Pick<LiveTracing, "spans">,
  keeper: Pick<FleetKeeper, "administered">,
): Partial<GatewayOptions> {
  const { clients, routes, prefix, cascade } = config;
  return {
    cascade,
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
    continuesStreams: clients.continueStreams,
    continuesByText: clients.continueByText,
    seedsStreams: clients.seedStreams,
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
