import * as z from "zod";
import { environmentName } from "./schema-value.ts";

export const emulate = z
  .strictObject({
    prefill: z
      .int()
      .min(0)
      .max(63)
      .default(0)
      .describe(
        "How many of the engines compute prompts for the others, by the label llm-d.ai/role; 0: none has a role.",
      ),
    kvTransfer: z
      .strictObject({
        latencyMillis: z
          .number()
          .min(0)
          .max(60_000)
          .default(0.05)
          .describe("Time before the first byte of a transfer."),
        gigabytesPerSecond: z
          .number()
          .gt(0)
          .max(1e5)
          .default(25)
          .describe("Bandwidth of one transfer, in GB per second."),
        failurePolicy: z
          .enum(["fail", "recompute"])
          .default("fail")
          .describe("What to do about blocks that do not arrive, as vLLM's kv_load_failure_policy."),
        leaseSeconds: z
          .number()
          .gt(0)
          .max(86_400)
          .default(30)
          .describe("How long blocks are held that nobody fetches, as vLLM's kv_lease_duration."),
      })
      .prefault({})
      .describe("Transfers of blocks from one engine to another."),
    kvConnector: z
      .boolean()
      .default(false)
      .describe(
        "Every engine has a KV connector like vLLM's NIXL connector; with prefill above 0 all have one anyway.",
      ),
    count: z.int().min(1).max(64).default(3).describe("Emulated engines."),
    host: z.string().min(1).default("127.0.0.1").describe("Address that the engines listen on."),
    portBase: z
      .int()
      .min(0)
      .max(65_535)
      .default(0)
      .describe("Port of the first engine, the others following; 0 takes free ones."),
    model: z.string().min(1).max(256).default("llama-3.1-8b").describe("Model name that the engines serve."),
    engine: z
      .string()
      .min(1)
      .default("h100-llama-3.1-8b")
      .describe("Engine by name (see config/engines), or the path of an engine file."),
    timeScale: z
      .number()
      .gt(0)
      .max(1000)
      .default(1)
      .describe("Engine seconds per second of wall time: 2 runs twice as fast."),
    outputTokensMean: z
      .number()
      .min(1)
      .max(1e6)
      .default(160)
      .describe("Mean length of an answer that ends on its own."),
    tokenizerFile: z
      .string()
      .min(1)
      .optional()
      .describe("tokenizer.json that the engines count with; by default 4 bytes a token."),
    chatTemplate: z
      .string()
      .min(1)
      .optional()
      .describe("tokenizer_config.json or template file, which tokenizerFile needs."),
    apiKeyEnv: environmentName().optional().describe("Variable with the bearer token that the engines ask for."),
    runtimeAdapters: z
      .boolean()
      .default(false)
      .describe(
        "Allow LoRA adapters to be loaded and unloaded while engines run, as VLLM_ALLOW_RUNTIME_LORA_UPDATING does.",
      ),
    task: z
      .enum(["generate", "embed", "classify"])
      .default("generate")
      .describe("What the model does: generate text, or as a pooling model embed or classify prompts."),
    poolingSize: z
      .int()
      .min(1)
      .max(16_384)
      .optional()
      .describe("Dimensions of an embedding (64), or classes (2); a model of one class scores pairs of texts."),
    sleepMode: z
      .boolean()
      .default(false)
      .describe("Answer /sleep, /wake_up and /is_sleeping, as --enable-sleep-mode does in vLLM's development mode."),
    seed: z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(1).describe("Seed of ids and of fault draws."),
    kvEvents: z
      .boolean()
      .default(false)
      .describe(
        "Publish KV events as vLLM does, at ports 10000 and 20000 away from the engine's, free ones if that is 0.",
      ),
  })
  .refine((value) => value.prefill === 0 || value.prefill < value.count, {
    path: ["prefill"],
    message: "fewer than count",
  })
  .refine((value) => (value.tokenizerFile === undefined) === (value.chatTemplate === undefined), {
    path: ["chatTemplate"],
    message: "tokenizerFile and chatTemplate together",
  });
