import * as z from "zod";
import { MIB, MILLIS_PER_DAY, millis } from "./schema-value.ts";

/** Reading the engines' metrics pages and model lists. */
export const scrape = z.strictObject({
  intervalMillis: millis(10, 600_000)
    .optional()
    .describe(
      "Time between two scrapes of a server's /metrics; where it is left out, what the policy's profiles are made for, " +
        "at most 1000.",
    ),
  timeoutMillis: millis(10, 600_000).default(2000).describe("Time limit of one scrape."),
  staleAfterMillis: millis(10, MILLIS_PER_DAY)
    .default(3000)
    .describe("Age above which the router's own ledger replaces scraped signals."),
  modelsIntervalMillis: millis(100, MILLIS_PER_DAY).default(30_000).describe("Time between two reads of /v1/models."),
  lostAfterMillis: millis(100, MILLIS_PER_DAY)
    .default(5000)
    .describe("A server that accepts no connection for this long is removed from the router."),
  retryMillis: millis(10, 600_000)
    .default(250)
    .describe("First pause before a server that is not ready is asked again; it doubles each time."),
  retryMillisMax: millis(10, 600_000).default(5000).describe("Longest such pause."),
  pageBytesMax: z
    .int()
    .min(65_536)
    .max(64 * MIB)
    .default(MIB)
    .describe("Bytes of a server's /metrics; vLLM's are 75 KB, and 31 KB for each further rank."),
});
