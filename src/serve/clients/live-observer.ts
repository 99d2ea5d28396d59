import type { Gateway } from "#live/gateway/gateway.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { part } from "../assembly/part.ts";
import type { Certificates } from "./certificates.ts";
import { servedWithTls } from "./grpc-tls.ts";
import { noticeMillis } from "./live-gateway.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { LiveFront } from "../tap/live-tap.ts";

interface Needed extends Pick<GatewayContext, "plan" | "environment"> {
  readonly gateway: Gateway;
  readonly front: LiveFront;
  readonly logs: { readonly faults: FaultLog };
  readonly certificates: Certificates;
}

/** Is shown by an Envoy what passes it; undefined where that is not configured. */
export const observerPart = part({
  name: "observer",
  needs: ["plan", "environment", "gateway", "front", "logs", "certificates"],
  start: (needed: Needed) => startObserver(needed),
  drain: async (live, { plan, environment }) => {
    await live?.server.stop(plan.config.listen.drainMillis, noticeMillis(plan.config, environment));
  },
  stop: (live) => live?.held.stop(),
});

async function startObserver({ plan, gateway, front, logs, certificates }: Needed) {
  const { listen, tap, picker } = plan.config;
  const { port } = tap.envoy;
  if (port === undefined || front.observer === undefined) return undefined;
  const { observer } = front;
  const at = { host: listen.host, port, section: "tap.envoy", keys: tap.envoy, portFlag: "--envoy-port" };
  return servedWithTls(at, { report: logs.faults.report, certificates }, async (tls) => {
    const { startTap } = await import("#picker/tap/start-tap.ts");
    return startTap({
      ...observer,
      gateway: gateway.shared,
      routes: gateway.routes,
      host: listen.host,
      port,
      healthPort: undefined,
      tls,
      rules: picker,
      ready: () => true,
    });
  });
}
