import * as z from "zod";
import { environmentName, millis } from "./schema-value.ts";

/** Spans of requests, by OpenTelemetry's protocol. */
export const tracing = z.strictObject({
  url: z
    .url()
    .max(1024)
    .optional()
    .describe("Where spans go, by OTLP over HTTP: http://collector:4318/v1/traces. Unset: there are none."),
  headersEnv: environmentName()
    .optional()
    .describe("Variable with headers sent there, as name=value,name=value: a collector's key."),
  sampleShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.01)
    .describe(
      "Share of requests with spans, of those whose client sent no traceparent; one that did decides for its own.",
    ),
  serviceName: z.string().min(1).max(255).default("gnomon").describe("service.name of the spans."),
  queueMax: z.int().min(1).max(1_000_000).default(2048).describe("Spans that wait to be sent; more are dropped."),
  sendMillis: millis(10, 600_000).default(5000).describe("Time between two batches."),
  timeoutMillis: millis(10, 600_000).default(10_000).describe("Bound on sending one."),
});
