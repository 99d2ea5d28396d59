import * as z from "zod";

/** The Prometheus page of the gateway. */
export const metrics = z.strictObject({
  modelsMax: z
    .int()
    .min(1)
    .max(10_000)
    .default(64)
    .describe("Most models with series of their own; the others share one."),
  endpointsMax: z.int().min(1).max(10_000).default(512).describe("Endpoints with series of their own."),
  tenantsMax: z
    .int()
    .min(1)
    .max(10_000)
    .default(64)
    .describe("Most tenants with series of their own; the others share one."),
  processMetrics: z.boolean().default(true).describe("CPU, memory and event loop of this process."),
});
