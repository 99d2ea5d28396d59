import { createHmac } from "node:crypto";
import type { Config } from "#config/schema.ts";
import type { GatewaySettings } from "#live/gateway.ts";
import { LoopLoad } from "#live/loop-load.ts";
import type { IdentityOptions } from "#live/request/identity.ts";
import { adminAccess } from "#live/status/admin-access.ts";
import type { LiveTracing } from "./live-tracing.ts";
import type { LiveTls } from "./live-tls.ts";
import { gatewayLimits, type LivePolicy } from "./policy/live-policy.ts";

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

/** What the configuration states of clients, and what it lets pass; how both sides are spoken to. */
export function towardsClients(
  config: Config,
  adminToken: string | undefined,
  ways: Pick<LiveTls, "connections" | "listenTls"> & Pick<LiveTracing, "spans">,
): Partial<GatewaySettings> {
  const { clients, routes, prefix, cascade } = config;
  return {
    cascade,
    connections: ways.connections,
    listenTls: ways.listenTls,
    ...(ways.spans && { spans: ways.spans }),
    answersIndexed: prefix.answers,
    load: new LoopLoad(),
    limits: gatewayLimits(config),
    timeoutHeaders: clients.timeoutHeaders,
    requestUsage: clients.requestUsage,
    continuesStreams: clients.continueStreams,
    continuesByText: clients.continueByText,
    sendsOwnHeaders: clients.ownHeaders,
    corsOrigins: clients.corsOrigins,
    extraRoutes: routes.extra,
    administration: {
      paths: routes.administration,
      access: adminAccess(adminToken),
      millisMax: routes.administrationMillisMax,
    },
  };
}
