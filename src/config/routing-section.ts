import * as z from "zod";
import { ENGINE_FIELDS, ENGINE_HEADERS } from "#core/engine-names.ts";
import { PROFILE_FILES } from "./profile-files.ts";
import { BLOCK_TOKENS_MAX, MILLIS_PER_DAY, environmentName, header, headers, millis } from "./schema-value.ts";

const breaker = z.strictObject({
  failuresMax: z
    .int()
    .min(1)
    .max(1000)
    .default(3)
    .describe("Failures in a row after which an endpoint gets no more requests."),
  pauseMillis: millis(1, MILLIS_PER_DAY).default(1000).describe("First pause; doubles with each failed probe."),
  pauseMillisMax: millis(1, MILLIS_PER_DAY).default(30_000).describe("Longest pause."),
  jitterShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .describe(
      "Largest share by which a pause is shortened at random, so that not all endpoints are tried again at once.",
    ),
  saturatedPauseMillis: millis(0, MILLIS_PER_DAY)
    .default(200)
    .describe("Pause after an endpoint reported that it is full."),
  drainingPauseMillis: millis(0, MILLIS_PER_DAY)
    .default(15_000)
    .describe(
      "Shortest pause after an endpoint drained: shutting down takes seconds, and a probe there may get nothing.",
    ),
});

const share = () => z.number().min(0).max(1);

const ejection = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe("Eject endpoints for a while that do worse than the others, even if no breaker opens."),
  intervalMillis: millis(100, MILLIS_PER_DAY)
    .default(10_000)
    .describe("Time between two evaluations of all endpoints; each covers the time since the one before."),
  requestsMin: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(20)
    .describe("Least number of requests that must have ended at an endpoint within an interval to judge it."),
  failureShare: share()
    .default(0.3)
    .describe(
      "An endpoint is ejected at this share of failed requests, if the others fail at most half as often; 0 for never.",
    ),
  slowFactor: z
    .number()
    .min(0)
    .max(1000)
    .default(4)
    .describe(
      "An endpoint is ejected if its mean time per output token is this many times the others' median; 0 for never.",
    ),
  ejectMillis: millis(1, MILLIS_PER_DAY)
    .default(30_000)
    .describe("Duration of the first ejection; each further one is longer by as much."),
  ejectMillisMax: millis(1, MILLIS_PER_DAY).default(300_000).describe("Longest such time."),
  floorShare: share()
    .default(0.5)
    .describe(
      "Share of the endpoints for a request that is never ejected, whatever evaluations and health checks find.",
    ),
});

const slowStart = z.strictObject({
  windowMillis: millis(0, MILLIS_PER_DAY)
    .default(0)
    .describe("Time until an endpoint that joins or comes back gets its full share of requests; 0: at once."),
  shareMin: z.number().min(0.001).max(1).default(0.1).describe("Share that it starts with."),
});

export const routing = z.strictObject({
  profile: z
    .string()
    .min(1)
    .default("gnomon")
    .describe(`Profile by name, or the path, with a / or .yaml, of ${PROFILE_FILES}.`),
  models: z.record(z.string(), z.string().min(1)).default({}).describe("Profile per model, if it differs."),
  profilesAllowed: z
    .array(z.string().min(1))
    .max(64)
    .default([])
    .describe("Profiles that a request may choose by header; none by default."),
  profileHeader: header().default("routing-strategy").describe("Request header that chooses one of them."),
  seed: z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(1).describe("Seed of every random draw of the router."),
  breaker: breaker.prefault({}).describe("When an endpoint that fails is left alone."),
  ejection: ejection.prefault({}).describe("When one that fares worse than the others is."),
  slowStart: slowStart.prefault({}).describe("How an endpoint that is new, or comes back, gets its share."),
});

export const clients = z.strictObject({
  keysEnv: environmentName()
    .optional()
    .describe(
      "Variable with the API keys that clients must send, comma-separated; unset: everybody is admitted and Authorization is passed on.",
    ),
  keysFile: z
    .string()
    .min(1)
    .optional()
    .describe("YAML file with the digests of further keys and their tenants; `gnomon keys new` makes entries."),
  keysWatchMillis: millis(0, MILLIS_PER_DAY)
    .default(1000)
    .describe("Time between two checks of the file; 0 to follow no changes."),
  tenantHeaders: headers()
    .default(["x-gnomon-tenant"])
    .describe(
      "Request headers that name the tenant where the gateway has no keys, or the request comes from trustedProxies and its key is bound to none; otherwise a digest of the API key, or of the body's user.",
    ),
  trustedProxies: z
    .array(
      z
        .union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])
        .meta({ expected: "an address, or a network such as 10.1.0.0/16" }),
    )
    .max(256)
    .default([])
    .describe(
      "Addresses and networks of proxies that name the tenants of requests; they must set tenantHeaders on each, or remove them. With keys, those headers count from nobody else.",
    ),
  classes: z
    .array(z.string().max(64))
    .max(256)
    .optional()
    .describe("Service classes that requests may name whose key is bound to no tenant; unset: every one."),
  sessionHeaders: headers()
    .default(["x-session-id", "x-gnomon-session"])
    .describe(
      "Request headers that name the conversation; else session_id, prompt_cache_key or conversation_id of the body.",
    ),
  sloClassHeader: header().default("x-gnomon-slo-class").describe("Request header with the service class."),
  engineFields: z
    .array(z.enum([...ENGINE_FIELDS, ...ENGINE_HEADERS]))
    .default([])
    .describe(
      `Fields and headers between engines that clients may send; others are removed from their requests and counted. Known: ${[...ENGINE_FIELDS, ...ENGINE_HEADERS].join(", ")}.`,
    ),
  requestUsage: z
    .boolean()
    .default(true)
    .describe(
      "Ask engines for token counts in every stream. Clients that did not ask do not see them, nor vLLM's system_fingerprint, which comes with them.",
    ),
  continueStreams: z
    .boolean()
    .default(true)
    .describe(
      "Ask vLLM for the token ids of chat and completion streams (return_token_ids), so that a stream whose engine dies, hangs or drains continues at another; clients that did not ask for ids do not see them.",
    ),
  continueByText: z
    .boolean()
    .default(true)
    .describe(
      "If an engine sends no token ids, continue such a stream from its text: a chat by continue_final_message, a completion by a longer prompt. The rest may differ from what the first engine would have generated, and is counted separately; set false for engines that do not know continue_final_message.",
    ),
  seedStreams: z
    .boolean()
    .default(false)
    .describe(
      "Give sampled streams of tools, structured output and /v1/responses that state no seed a random one, so that another engine can repeat them if theirs breaks. A seed costs engines some sampling speed; /v1/messages has none.",
    ),
  timeoutHeaders: headers()
    .default(["x-gnomon-timeout-ms", "x-envoy-upstream-rq-timeout-ms", "grpc-timeout"])
    .describe(
      "Headers by which a client states how long it waits for its whole answer; the first that is present counts, in milliseconds (grpc-timeout in gRPC's form). After that time the engine is stopped and the answer is 504; 0 is no limit, and limits.totalMillisMax applies in any case.",
    ),
  ownHeaders: z
    .boolean()
    .default(true)
    .describe("Answers carry x-gnomon-endpoint, x-gnomon-profile, x-gnomon-reason and x-gnomon-hit-tokens."),
  corsOrigins: z
    .array(
      z
        .string()
        .regex(/^(?:\*|https?:\/\/[^\s/]+)$/)
        .meta({ expected: '"*" or an origin such as https://chat.example' }),
    )
    .max(64)
    .default([])
    .describe(
      "Origins whose browser pages may call the gateway. None: preflight requests are answered without CORS headers, and engines' own pass in their answers.",
    ),
});

export const prefix = z
  .strictObject({
    blockTokens: z
      .union([z.literal("engine"), z.int().min(1).max(BLOCK_TOKENS_MAX)])
      .default("engine")
      .describe("Tokens per block. engine: as the engines' metrics state, 16 before the first scrape."),
    blockHash: z
      .enum(["blake3", "fast", "vllm-sha256", "vllm-sha256-cbor"])
      .default("blake3")
      .describe(
        "Chain hash. fast: a two-word mix, for very long cold prompts. vllm-sha256, vllm-sha256-cbor: as vLLM's --prefix-caching-hash-algo sha256 or sha256_cbor, so that KV events without tokens can be used; block hashes are then not keyed.",
      ),
    engineSeed: z
      .string()
      .max(255)
      .optional()
      .describe("PYTHONHASHSEED of the engines, if blockHash is one of vLLM's; unset if they have none."),
    engineModels: z
      .array(z.string().min(1))
      .max(64)
      .default([])
      .describe(
        "Models whose prompts get vLLM's hashes if blockHash is one of vLLM's: those that engines serve without an adapter. Prompts for other models, or with a cache salt, keep the gateway's own hashes.",
      ),
    capacityTokens: z
      .int()
      .min(1024)
      .max(1e10)
      .default(500_000)
      .describe("Assumed cache size per endpoint until the engine reports its own."),
    answers: z
      .enum(["ids", "text", "off"])
      .default("ids")
      .describe(
        "Which answers enter the prefix index. ids: those whose token ids are requested, by the client or by clients.continueStreams; text: also those whose text gives as many tokens as the engine counted.",
      ),
    secretEnv: environmentName()
      .optional()
      .describe("Variable that holds the key of the block hashes; by default a new random key at every start."),
  })
  .refine(({ blockHash, engineModels }) => !blockHash.startsWith("vllm-") || engineModels.length > 0, {
    path: ["engineModels"],
    message: "at least one model where blockHash is vLLM's",
  });

export const tokenizerShape = z.strictObject({
  kind: z
    .enum(["estimate", "character", "tiktoken", "huggingface", "vllm"])
    .default("estimate")
    .describe("How prompts become tokens and blocks."),
  file: z
    .string()
    .min(1)
    .optional()
    .describe("tokenizer.json of kind huggingface, or the folder that holds it and the chat template."),
  chatTemplate: z
    .string()
    .min(1)
    .optional()
    .describe("File with the chat template, if it is not beside the tokenizer."),
  encoding: z
    .enum(["cl100k_base", "o200k_base", "p50k_base", "r50k_base"])
    .default("cl100k_base")
    .describe("Encoding of kind tiktoken."),
  blockCharacters: z.int().min(1).max(65_536).default(128).describe("Characters per block of kind character."),
  memoEntriesMax: z
    .int()
    .min(0)
    .max(10_000_000)
    .default(65_536)
    .describe("Prefixes of conversations whose tokens and hashes are kept; 0 for none."),
  memoBytesMax: z
    .int()
    .min(0)
    .max(1e12)
    .default(33_554_432)
    .describe("Bytes that these may take; 32 MiB are some 500 conversations of 32 KB."),
  timeoutMillis: millis(1, 60_000)
    .default(200)
    .describe("Time limit of one /tokenize call of kind vllm; after it, tokens are estimated."),
});

export const tokenizer = tokenizerShape.refine((value) => value.kind !== "huggingface" || value.file !== undefined, {
  path: ["file"],
  message: "the path of a tokenizer.json or its folder, which kind huggingface needs",
});

export const tokenizerCacheFolder = z
  .string()
  .min(1)
  .default("auto")
  .describe(
    "Folder for tables derived from each tokenizer.json, so that the next start takes less time and memory. auto: gnomon in XDG_CACHE_HOME or ~/.cache, or in the folder for temporary files; off: none.",
  );
