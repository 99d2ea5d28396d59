import type { Certificates } from "./certificates.ts";
import { servedWithTls } from "./grpc-tls.ts";
import type { Gateway } from "#live/gateway/gateway.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { Readiness } from "#live/status/readiness.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import { noticeMillis } from "./live-gateway.ts";

interface Needed extends Pick<GatewayContext, "plan" | "environment"> {
  readonly gateway: Gateway;
  readonly readiness: Readiness;
  readonly logs: { readonly faults: FaultLog };
  readonly certificates: Certificates;
}

/** Answers a proxy's questions beside the gateway, with the same router; undefined where that is not configured. */
export const pickerPart = part({
  name: "picker",
  needs: ["plan", "environment", "gateway", "readiness", "logs", "certificates"],
  start: (needed: Needed) => startLivePicker(needed),
  drain: async (live, { plan, environment }) => {
    await live?.server.stop(plan.config.listen.drainMillis, noticeMillis(plan.config, environment));
  },
  stop: (live) => live?.held.stop(),
});

async function startLivePicker({ plan, gateway, readiness, logs, certificates }: Needed) {
  const { listen, picker, routes } = plan.config;
  const { port } = picker;
  if (port === undefined) return undefined;
  const at = { host: listen.host, port, section: "picker", keys: picker, portFlag: "--picker-port" };
  return servedWithTls(at, { report: logs.faults.report, certificates }, async (tls) => {
    // Its libraries are loaded where they are used.
    const { startPicker } = await import("#picker/picker-server.ts");
    return startPicker({
      gateway: gateway.shared,
      routes: gateway.routes,
      administration: routes.administration,
      host: listen.host,
      port,
      healthPort: picker.healthPort,
      tls,
      fallbacksMax: picker.fallbacks,
      rules: picker,
      ready: () => readiness.waitsFor().length === 0,
    });
  });
}
