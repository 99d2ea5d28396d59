import type { Config } from "#config/schema.ts";
import type { GatewayOptions } from "#live/gateway.ts";
import { LoopLoad } from "#live/loop-load.ts";
import { adminAccess } from "#live/status/admin-access.ts";
import { gatewayLimits } from "./policy/live-policy.ts";

/** What the configuration states of clients, and what it lets pass. */
export function towardsClients(config: Config, adminToken: string | undefined): Partial<GatewayOptions> {
  const { clients, routes, prefix, cascade } = config;
  return {
    cascade,
    answersIndexed: prefix.answers,
    load: new LoopLoad(),
    limits: gatewayLimits(config),
    timeoutHeaders: clients.timeoutHeaders,
    requestUsage: clients.requestUsage,
    continuesStreams: clients.continueStreams,
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
