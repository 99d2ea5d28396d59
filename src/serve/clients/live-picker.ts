import { grpcTls } from "./grpc-tls.ts";
import { refusedBySystem } from "../process/system-error.ts";
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
}

/** Answers a proxy's questions beside the gateway, with the same router; undefined where that is not configured. */
export const pickerPart = part({
  name: "picker",
  needs: ["plan", "environment", "gateway", "readiness", "logs"],
  start: (needed: Needed) => startLivePicker(needed),
  drain: async (live, { plan, environment }) => {
    await live?.picker.stop(plan.config.listen.drainMillis, noticeMillis(plan.config, environment));
  },
  stop: (live) => live?.held.stop(),
});

async function startLivePicker({ plan, gateway, readiness, logs }: Needed) {
  const { listen, picker, routes } = plan.config;
  const { port } = picker;
  if (port === undefined) return undefined;
  // Its libraries are loaded where they are used.
  const held = await grpcTls("picker", picker, logs.faults.report);
  const { startPicker } = await import("#picker/picker-server.ts");
  const options = {
    gateway: gateway.parts,
    routes: gateway.routes,
    administration: routes.administration,
    host: listen.host,
    port,
    healthPort: picker.healthPort,
    tls: held.tls,
    fallbacksMax: picker.fallbacks,
    rules: picker,
    ready: () => readiness.waitsFor().length === 0,
  };
  const started = await startPicker(options).catch(async (error: unknown) => {
    await held.stop();
    throw refusedBySystem(`cannot listen on ${listen.host}:${port}`, error, "choose another with --picker-port");
  });
  return { held, picker: started };
}
