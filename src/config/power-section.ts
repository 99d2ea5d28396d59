import * as z from "zod";
import { MIB, MILLIS_PER_DAY, httpUrl, millis } from "./schema-value.ts";

/** Power and activity of the endpoints' GPUs, from DCGM exporters. */
export const power = z.strictObject({
  exporters: z
    .array(httpUrl())
    .max(1024)
    .default([])
    .describe("Metrics pages of DCGM exporters, for power and multiprocessor activity; none by default."),
  devices: z
    .record(z.string(), z.record(z.string(), z.string()))
    .default({})
    .describe(
      "Endpoint id to labels of its GPUs, values comma-separated: {gpu-7: {Hostname: n7, gpu: '0,1'}}. Pods have theirs by the label pod.",
    ),
  intervalMillis: millis(100, 600_000).default(5000).describe("Time between two reads of an exporter."),
  timeoutMillis: millis(10, 600_000).default(2000).describe("Time limit of one read."),
  staleAfterMillis: millis(100, MILLIS_PER_DAY).default(15_000).describe("Age above which a page is ignored."),
  pageBytesMax: z
    .int()
    .min(65_536)
    .max(64 * MIB)
    .default(MIB)
    .describe("Bytes of an exporter's page."),
});
