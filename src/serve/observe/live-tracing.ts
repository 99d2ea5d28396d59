import type { Config } from "#config/schema.ts";
import type { RequestSpans } from "#live/tracing/request-spans.ts";
import { gnomonVersion } from "../process/gnomon-version.ts";
import { secretOf } from "../process/secrets.ts";
import { part } from "../assembly/part.ts";
import type { Environment, GatewayContext } from "../plan/gateway-context.ts";

export interface LiveTracing {
  /** Undefined where nothing is traced; no code for it is loaded then. */
  readonly spans: RequestSpans | undefined;
  /** Sends what waits. */
  stop(): Promise<void>;
}

/** Spans as configured, sent in batches from this thread. */
export async function openTracing({ tracing }: Config, environment: Environment): Promise<LiveTracing> {
  const { url, sampleShare, serviceName, queueMax, sendMillis, timeoutMillis } = tracing;
  if (url === undefined) return { spans: undefined, stop: () => Promise.resolve() };
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }, { OtelSpans }] = await Promise.all([
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
    import("#live/tracing/otel-spans.ts"),
  ]);
  const exporter = new OTLPTraceExporter({
    url,
    headers: headersOf(secretOf(tracing.headersEnv, environment)),
    timeoutMillis,
  });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ "service.name": serviceName, "service.version": gnomonVersion() }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(sampleShare) }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter,
        maxQueueSize: queueMax,
        maxExportBatchSize: Math.min(BATCH_MAX, queueMax),
        scheduledDelayMillis: sendMillis,
        exportTimeoutMillis: timeoutMillis,
      }),
    ],
  });
  return {
    spans: new OtelSpans(provider.getTracer("gnomon", gnomonVersion())),
    stop: () => provider.shutdown().catch(() => {}),
  };
}

const BATCH_MAX = 512;

function headersOf(text: string | undefined): Record<string, string> {
  const pairs = (text ?? "").split(",").flatMap((pair): [string, string][] => {
    const equals = pair.indexOf("=");
    return equals < 1 ? [] : [[pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()]];
  });
  return Object.fromEntries(pairs);
}

export const tracingPart = part({
  name: "tracing",
  needs: ["plan", "environment"],
  start: ({ plan, environment }: Pick<GatewayContext, "plan" | "environment">) => openTracing(plan.config, environment),
  stop: (tracing) => tracing.stop(),
});
