import type { Config } from "#config/schema.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { RequestSpans, SpanCounts } from "#live/tracing/request-spans.ts";
import { gnomonVersion } from "../process/gnomon-version.ts";
import { secretOf } from "../process/secrets.ts";
import { part } from "../assembly/part.ts";
import type { Environment, GatewayContext } from "../plan/gateway-context.ts";

export interface LiveTracing {
  /** Undefined where nothing is traced; no code for it is loaded then. */
  readonly spans: RequestSpans | undefined;
  readonly counts: SpanCounts | undefined;
  /** Sends what waits. */
  stop(): Promise<void>;
}

/** Spans as configured, sent in batches from this thread. */
export async function openTracing(
  { tracing }: Config,
  environment: Environment,
  { report }: Pick<FaultLog, "report">,
): Promise<LiveTracing> {
  const { url, sampleShare, serviceName, queueMax, sendMillis, timeoutMillis } = tracing;
  if (url === undefined) return { spans: undefined, counts: undefined, stop: () => Promise.resolve() };
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }, { OtelSpans }, { CountedExporter }] =
    await Promise.all([
      import("@opentelemetry/sdk-trace"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
      import("#live/tracing/otel-spans.ts"),
      import("#live/tracing/counted-exporter.ts"),
    ]);
  const headers = headersOf(secretOf(tracing.headersEnv, environment));
  const { host } = new URL(url);
  const exporter = new CountedExporter(new OTLPTraceExporter({ url, headers, timeoutMillis }), {
    failed: (detail) => report({ kind: "spans-failed", detail: `${host}: ${detail}`, done: LOST }),
    recovered: (lost) =>
      report({ kind: "spans-recovered", detail: `${host}, after ${lost} spans that are lost`, done: GOES_ON }),
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
    counts: exporter.counts,
    spans: new OtelSpans(provider.getTracer("gnomon", gnomonVersion())),
    stop: () => provider.shutdown().catch(() => {}),
  };
}

const BATCH_MAX = 512;
const GOES_ON = "spans are sent as before";
const LOST = "this batch is lost and counted; the next ones are sent all the same; requests are not affected";

function headersOf(text: string | undefined): Record<string, string> {
  const pairs = (text ?? "").split(",").flatMap((pair): [string, string][] => {
    const equals = pair.indexOf("=");
    return equals < 1 ? [] : [[pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()]];
  });
  return Object.fromEntries(pairs);
}

interface Needed extends Pick<GatewayContext, "plan" | "environment"> {
  readonly logs: { readonly faults: FaultLog };
}

export const tracingPart = part({
  name: "tracing",
  needs: ["plan", "environment", "logs"],
  start: ({ plan, environment, logs }: Needed) => openTracing(plan.config, environment, logs.faults),
  stop: (tracing) => tracing.stop(),
});
