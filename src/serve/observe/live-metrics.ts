import type { Intake } from "#live/base/intake.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import type { SourceBoard } from "#live/endpoints/source-board.ts";
import type { Gateway } from "#live/gateway/gateway.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { HangDetector } from "#live/keeper/hang-detector.ts";
import { ForecastAccuracy } from "#live/metrics/prediction-accuracy.ts";
import { GatewayMetrics, type MetricsOptions } from "#live/metrics/metrics.ts";
import type { Recorder } from "#live/recorder/recorder.ts";
import type { ShareStatus } from "#live/share/share-status.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { LiveFront } from "../tap/live-tap.ts";
import type { LivePolicy } from "../policy/live-policy.ts";
import type { StateFolder } from "../state/state-folder.ts";
import type { LiveTracing } from "./live-tracing.ts";
import type { LiveLogs } from "./live-log.ts";
import type { LiveShadow } from "./live-shadow.ts";

/** What the gateway counts, for whoever is there before it. */
export class GatewayCounts {
  gateway: Pick<Gateway, "counters" | "shared"> | undefined;

  readonly counters = () => this.gateway?.counters;
  readonly judges = () => this.gateway?.shared.judges;
}

export const countsPart = part({ name: "counts", needs: [], start: () => new GatewayCounts() });

interface Needed extends Pick<GatewayContext, "plan">, Pick<MetricsOptions, "rollouts" | "autopilot"> {
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly keeper: FleetKeeper;
  readonly hangs: HangDetector;
  readonly sources: SourceBoard;
  readonly share: { status(): ShareStatus } | undefined;
  readonly counts: GatewayCounts;
  readonly front: Pick<LiveFront, "status">;
  readonly logs: LiveLogs;
  readonly certificates: ReadonlyMap<string, number>;
  readonly tokenizers: { readonly counts: NonNullable<MetricsOptions["tokenizers"]> };
  readonly recorder: Recorder | undefined;
  readonly tracing: Pick<LiveTracing, "counts">;
  readonly state: { readonly folder: StateFolder | undefined };
  readonly shadow: LiveShadow | undefined;
  readonly kvEvents: { readonly metrics: Pick<MetricsOptions, "kvEvents" | "hitAccuracy"> };
  readonly policy: LivePolicy;
}

/** The gateway's numbers for Prometheus. */
export const metricsPart = part({
  name: "metrics",
  needs: [
    "plan",
    "intake",
    "directory",
    "keeper",
    "hangs",
    "sources",
    "share",
    "counts",
    "front",
    "logs",
    "certificates",
    "tokenizers",
    "recorder",
    "tracing",
    "state",
    "shadow",
    "kvEvents",
    "policy",
    "rollouts",
    "autopilot",
  ],
  start: ({
    plan,
    share,
    counts,
    front,
    logs,
    tokenizers,
    recorder,
    tracing,
    state,
    shadow,
    kvEvents,
    policy,
    ...parts
  }: Needed) => {
    const { config } = plan;
    const { intake, directory } = parts;
    const { folder } = state;
    const forecasts = new ForecastAccuracy(config.metrics.endpointsMax);
    const metrics = new GatewayMetrics({
      ...parts,
      router: intake.router,
      ...(share && { share: () => share.status() }),
      counters: counts.counters,
      judges: counts.judges,
      logs: logs.counts,
      observed: front.status,
      tokenizers: tokenizers.counts,
      recorder: () => recorder?.status(),
      spans: () => tracing.counts,
      policy: policy.admin,
      forecasts,
      orders: folder && (() => folder.orders.status),
      ...(shadow && { shadow: shadow.status }),
      ...kvEvents.metrics,
      ...config.metrics,
    });
    for (const listener of [forecasts, metrics]) intake.listen(listener);
    directory.listen(metrics);
    return metrics;
  },
});
