import * as z from "zod";
import { environmentName, httpUrl, millis } from "./schema-value.ts";

/** Spans of requests, by OpenTelemetry's protocol. */
export const tracing = z.strictObject({
  url: httpUrl()
    .optional()
    .describe("Where spans are sent, by OTLP over HTTP: http://collector:4318/v1/traces. Unset: no spans."),
  headersEnv: environmentName()
    .optional()
    .describe("Variable with headers for the collector, such as its key, as name=value,name=value."),
  sampleShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.01)
    .describe(
      "Share of requests with spans, among those whose client sent no traceparent; a traceparent decides for its own request.",
    ),
  serviceName: z.string().min(1).max(255).default("gnomon").describe("service.name of the spans."),
  queueMax: z.int().min(1).max(1_000_000).default(2048).describe("Most spans waiting to be sent; more are dropped."),
  sendMillis: millis(10, 600_000).default(5000).describe("Time between two batches."),
  timeoutMillis: millis(10, 600_000).default(10_000).describe("Time limit for sending a batch."),
});
