import * as z from "zod";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

const check = z.strictObject({
  enabled: z.boolean().default(false).describe("Ask every server how it is, whatever its requests show."),
  path: z.string().startsWith("/").max(256).default("/health").describe("What is asked for; only 200 is healthy."),
  intervalMillis: millis(100, MILLIS_PER_DAY)
    .default(5000)
    .describe("Time between two checks of a server; each differs by up to a tenth."),
  timeoutMillis: millis(10, 600_000).default(2000).describe("Bound on one check."),
  unhealthyAfter: z
    .int()
    .min(1)
    .max(100)
    .default(3)
    .describe("Checks in a row that fail until it gets no new request."),
  healthyAfter: z.int().min(1).max(100).default(2).describe("Checks in a row that succeed until it gets them again."),
  concurrencyMax: z.int().min(1).max(4096).default(64).describe("Checks under way at once, of all servers."),
});

/** When an endpoint that accepts requests and answers none is left, and how it is let back. */
export const health = z.strictObject({
  enabled: z.boolean().default(true).describe("Judge endpoints that answer nothing as hung and leave them."),
  path: z
    .string()
    .startsWith("/")
    .max(256)
    .default("/health")
    .describe("Health check of the engines, asked where a metrics page does not answer in time."),
  silentMillis: millis(100, MILLIS_PER_DAY)
    .default(5000)
    .describe("Hung: not a byte of any kind for so long, and so many probes in a row without an answer:"),
  probesFailedMin: z.int().min(1).max(100).default(2).describe("Those probes; metrics pages and health checks."),
  unansweredMillis: millis(100, MILLIS_PER_DAY)
    .default(8000)
    .describe(
      "Hung: requests without a byte for so long, where the health check answers and the metrics page does not.",
    ),
  stalledMillis: millis(100, MILLIS_PER_DAY)
    .default(15_000)
    .describe("Hung: requests without a byte for so long, where the metrics page shows that no work is done."),
  unwatchedMillis: millis(100, MILLIS_PER_DAY)
    .default(60_000)
    .describe("Hung: requests without a byte for so long, where there is no metrics page to look at."),
  usualFactor: z
    .number()
    .min(1)
    .max(1000)
    .default(4)
    .describe(
      "Requests that wait count only from so many times the endpoint's usual time to a first byte on (its 90 % quantile).",
    ),
  probesAnsweredMin: z
    .int()
    .min(1)
    .max(100)
    .default(2)
    .describe("Probes in a row whose answers let a silent one back."),
  returnMillis: millis(100, MILLIS_PER_DAY)
    .default(10_000)
    .describe("Pause before one that answers probes alone may try a request again; doubles each time that fails."),
  returnMillisMax: millis(100, MILLIS_PER_DAY).default(120_000).describe("Longest such pause."),
  servedUntilWell: z
    .int()
    .min(0)
    .max(10_000)
    .default(8)
    .describe("Requests that one let back serves until it gets any number at a time; it begins with one."),
  check: check.prefault({}).describe("Active health checks."),
});
