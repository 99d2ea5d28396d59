import * as z from "zod";
import { HOST_MEMORY_PRICE } from "#core/prefix/host-memory-price.ts";
import { millis } from "./schema-value.ts";

const hostMemory = z.strictObject({
  copyMicros: z
    .number()
    .min(0)
    .max(1e9)
    .default(HOST_MEMORY_PRICE.baseMicros)
    .describe("Microseconds before the first token of a prompt is copied to the device."),
  copyMicrosPerToken: z
    .number()
    .min(0)
    .max(1e6)
    .default(HOST_MEMORY_PRICE.tokenMicros)
    .describe("To copy one more: bytes of keys and values of a token over bytes a microsecond."),
  prefillMicrosPerToken: z
    .number()
    .min(0.001)
    .max(1e6)
    .default(HOST_MEMORY_PRICE.prefillTokenMicros)
    .describe("To compute one prompt token. Where copying takes as long, tokens in a host's memory count for nothing."),
});

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
  hostMemory: hostMemory
    .prefault({})
    .describe(
      "What prompt tokens are worth that an engine has in its host's memory, as by vLLM's OffloadingConnector.",
    ),
  replayMillis: millis(10, 60_000).default(1000).describe("Longest wait for an answer of a replay."),
});
