import type { Gateway } from "#live/gateway/gateway.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { part } from "../assembly/part.ts";
import { grpcTls } from "./grpc-tls.ts";
import { noticeMillis } from "./live-gateway.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import { refusedBySystem } from "../process/system-error.ts";
import type { LiveFront } from "../tap/live-tap.ts";

interface Needed extends Pick<GatewayContext, "plan" | "environment"> {
  readonly gateway: Gateway;
  readonly front: LiveFront;
  readonly logs: { readonly faults: FaultLog };
}

/** Is shown by an Envoy what passes it; undefined where that is not configured. */
export const observerPart = part({
  name: "observer",
  needs: ["plan", "environment", "gateway", "front", "logs"],
  start: (needed: Needed) => startObserver(needed),
  drain: async (live, { plan, environment }) => {
    await live?.server.stop(plan.config.listen.drainMillis, noticeMillis(plan.config, environment));
  },
  stop: (live) => live?.held.stop(),
});

async function startObserver({ plan, gateway, front, logs }: Needed) {
  const { listen, tap, picker } = plan.config;
  const { port } = tap.envoy;
  if (port === undefined || front.observer === undefined) return undefined;
  const held = await grpcTls("tap.envoy", tap.envoy, logs.faults.report);
  const { startTap } = await import("#picker/tap/start-tap.ts");
  const options = {
    ...front.observer,
    gateway: gateway.parts,
    routes: gateway.routes,
    host: listen.host,
    port,
    healthPort: undefined,
    tls: held.tls,
    rules: picker,
    ready: () => true,
  };
  const server = await startTap(options).catch(async (error: unknown) => {
    await held.stop();
    throw refusedBySystem(`cannot listen on ${listen.host}:${port}`, error, "choose another with --envoy-port");
  });
  return { held, server };
}
