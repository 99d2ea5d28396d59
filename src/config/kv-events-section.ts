import * as z from "zod";
import { HOST_MEMORY_PRICE } from "#core/prefix/host-memory-price.ts";
import { millis } from "./schema-value.ts";

const hostMemory = z.strictObject({
  copyMicros: z
    .number()
    .min(0)
    .max(1e9)
    .default(HOST_MEMORY_PRICE.baseMicros)
    .describe("Microseconds until the first token of a prompt is copied from the host to the device."),
  copyMicrosPerToken: z
    .number()
    .min(0)
    .max(1e6)
    .default(HOST_MEMORY_PRICE.tokenMicros)
    .describe(
      "Microseconds for each further token: bytes of a token's keys and values divided by bytes per microsecond.",
    ),
  prefillMicrosPerToken: z
    .number()
    .min(0.001)
    .max(1e6)
    .default(HOST_MEMORY_PRICE.prefillTokenMicros)
    .describe(
      "Microseconds to compute one prompt token. If copying takes as long, tokens in the host's memory count for nothing.",
    ),
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
    .describe(
      "Ask engines that join for the address at which they publish: GET /kv_event_sources, which vLLM answers.",
    ),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe(
      "Port at which every engine publishes, rank r at that port plus r; the label gnomon/kv-events-port takes precedence. Unset: what the engines answer.",
    ),
  replayPort: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe("Port at which missed events can be requested; the label gnomon/kv-events-replay-port takes precedence."),
  topic: z
    .string()
    .max(256)
    .default("")
    .describe("Prefix of the topics that are followed at that port; empty for all."),
  hostMemory: hostMemory
    .prefault({})
    .describe(
      "What prompt tokens are worth that an engine has in its host's memory, as by vLLM's OffloadingConnector.",
    ),
  replayMillis: millis(10, 60_000).default(1000).describe("Longest wait for the answer to a replay request."),
});
