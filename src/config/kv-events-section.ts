import * as z from "zod";
import { millis } from "./schema-value.ts";

export const kvEvents = z.strictObject({
  mode: z
    .enum(["auto", "on", "off"])
    .default("auto")
    .describe(
      "Whether engines' KV events are followed. auto: where prompts become the engines' own tokens (tokenizer kinds huggingface and vllm).",
    ),
  discover: z
    .boolean()
    .default(true)
    .describe("Ask engines that join where they publish: GET /kv_event_sources, which vLLM answers."),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe(
      "Port at which every engine publishes, rank r at r above it; the label gnomon/kv-events-port wins. Unset: as engines answer.",
    ),
  replayPort: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe("Port at which missed events can be asked for; the label gnomon/kv-events-replay-port wins."),
  topic: z
    .string()
    .max(256)
    .default("")
    .describe("Beginning of the topics that are followed at that port; all if empty."),
  replayMillis: millis(10, 60_000).default(1000).describe("Longest wait for an answer of a replay."),
});
