import * as z from "zod";
import { DATA_PARALLEL_MAX, environmentName, origin } from "./schema-value.ts";

/** Labels and facts of an engine that its source may state. */
export const engineFacts = {
  labels: z
    .record(z.string(), z.string())
    .default({})
    .describe("Labels that filters may read, for example role: decode."),
  apiKeyEnv: environmentName().optional().describe("Variable that holds the bearer token sent to this endpoint."),
  dataParallelRanks: z
    .int()
    .min(1)
    .max(DATA_PARALLEL_MAX)
    .default(1)
    .describe("Data-parallel ranks behind the URL; above 1 each is its own endpoint."),
  kvCapacityTokens: z
    .int()
    .min(1)
    .max(1e12)
    .optional()
    .describe("Room of its KV cache, where /metrics does not report it."),
  concurrencyMax: z
    .int()
    .min(1)
    .max(1e6)
    .optional()
    .describe("Requests that it runs at once (max_num_seqs), where known."),
  engine: z
    .string()
    .min(1)
    .optional()
    .describe(
      "An engine of config/engines by name, or an engine file: its step times are where predicted-latency begins, instead of its parameters.",
    ),
};

/** One engine of a list. */
export const endpoint = z.strictObject({
  url: origin().describe("Origin of a vLLM (or compatible) server."),
  id: z.string().min(1).max(256).optional().describe("Stable name; by default the URL."),
  ...engineFacts,
});
