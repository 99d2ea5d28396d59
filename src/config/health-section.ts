import * as z from "zod";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

const check = z.strictObject({
  enabled: z.boolean().default(false).describe("Check every server's health actively, whatever its requests show."),
  path: z
    .string()
    .startsWith("/")
    .max(256)
    .default("/health")
    .describe("Path of the check; only status 200 is healthy."),
  intervalMillis: millis(100, MILLIS_PER_DAY)
    .default(5000)
    .describe("Time between two checks of a server; it varies by up to a tenth."),
  timeoutMillis: millis(10, 600_000).default(2000).describe("Time limit of one check."),
  unhealthyAfter: z
    .int()
    .min(1)
    .max(100)
    .default(3)
    .describe("Failed checks in a row after which a server gets no new requests."),
  healthyAfter: z
    .int()
    .min(1)
    .max(100)
    .default(2)
    .describe("Successful checks in a row after which it gets them again."),
  concurrencyMax: z.int().min(1).max(4096).default(64).describe("Most checks under way at once, over all servers."),
});

/** When an endpoint that accepts requests and answers none is left, and how it is let back. */
export const health = z.strictObject({
  enabled: z.boolean().default(true).describe("Judge endpoints that stop answering as hung, and avoid them."),
  path: z
    .string()
    .startsWith("/")
    .max(256)
    .default("/health")
    .describe("Health check of the engines, requested if a metrics page does not answer in time."),
  silentMillis: millis(100, MILLIS_PER_DAY)
    .default(5000)
    .describe("Hung if no byte of any kind came for this long and probesFailedMin probes in a row failed."),
  probesFailedMin: z
    .int()
    .min(1)
    .max(100)
    .default(2)
    .describe("Probes in a row that must fail for that; metrics pages and health checks count."),
  unansweredMillis: millis(100, MILLIS_PER_DAY)
    .default(8000)
    .describe(
      "Hung if requests got no byte for this long while the health check answers and the metrics page does not.",
    ),
  stalledMillis: millis(100, MILLIS_PER_DAY)
    .default(15_000)
    .describe("Hung if requests got no byte for this long while the metrics page shows that no work is done."),
  begunMillis: millis(100, MILLIS_PER_DAY)
    .default(5000)
    .describe("The same for streams that have begun, which get a token with each step of an engine."),
  unwatchedMillis: millis(100, MILLIS_PER_DAY)
    .default(60_000)
    .describe("Hung if requests got no byte for this long and there is no metrics page."),
  usualFactor: z
    .number()
    .min(1)
    .max(1000)
    .default(4)
    .describe(
      "A waiting request counts only once it has waited this many times the endpoint's usual time to a first byte (its 90th percentile).",
    ),
  usualMillisMax: millis(100, MILLIS_PER_DAY)
    .default(20_000)
    .describe("Longest such time for streamed requests, however slow an overloaded engine was."),
  prefillMicrosPerToken: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(1000)
    .describe(
      "No waiting request counts before the longest prompt that waits there could be computed, at this time for each token that is not cached; more for engines that are slower.",
    ),
  probesAnsweredMin: z
    .int()
    .min(1)
    .max(100)
    .default(2)
    .describe("Probes in a row that a silent endpoint must answer to be readmitted."),
  returnMillis: millis(100, MILLIS_PER_DAY)
    .default(10_000)
    .describe(
      "Pause before an endpoint that answers only probes gets a request again; it doubles each time that fails.",
    ),
  returnMillisMax: millis(100, MILLIS_PER_DAY).default(120_000).describe("Longest such pause."),
  servedUntilWell: z
    .int()
    .min(0)
    .max(10_000)
    .default(8)
    .describe(
      "Requests that a readmitted endpoint must serve until it gets any number at once: one, then twice as many with each that it answers.",
    ),
  check: check.prefault({}).describe("Active health checks."),
});
