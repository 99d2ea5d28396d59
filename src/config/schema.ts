import * as z from "zod";

/**
 * The whole configuration: shape, bounds, default and meaning, each said here and nowhere else. The description of every
 * key, the names of the environment variables and config/default.yaml are generated from this schema.
 */

const MILLIS_PER_DAY = 86_400_000;
const MIB = 1_048_576;

const environmentName = () =>
  z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
    .meta({ expected: "the name of an environment variable", secret: true });

const origin = () =>
  z
    .string()
    .refine(isOrigin, { message: "not an origin" })
    .meta({ expected: "an origin such as http://10.0.0.5:8000" });

const millis = (min: number, max: number) => z.int().min(min).max(max);

const listen = z.strictObject({
  host: z.string().min(1).default("127.0.0.1").describe("Address to listen on."),
  port: z.int().min(0).max(65_535).default(8080).describe("Port to listen on; 0 takes a free one."),
});

const endpoint = z.strictObject({
  url: origin().describe("Origin of a vLLM (or compatible) server."),
  id: z.string().min(1).max(256).optional().describe("Stable name; by default the URL."),
  labels: z
    .record(z.string(), z.string())
    .default({})
    .describe("Labels that filters may read, for example role: decode."),
  apiKeyEnv: environmentName().optional().describe("Variable that holds the bearer token sent to this endpoint."),
  dataParallelRanks: z
    .int()
    .min(1)
    .max(1024)
    .default(1)
    .describe("Data-parallel ranks behind the URL; above 1 each is its own endpoint."),
  kvCapacityTokens: z.int().min(1).max(1e12).optional().describe("Room of its KV cache, where /metrics does not tell."),
  concurrencyMax: z
    .int()
    .min(1)
    .max(1e6)
    .optional()
    .describe("Requests that it runs at once (max_num_seqs), where known."),
});

const discovery = z
  .strictObject({
    kind: z
      .enum(["static", "kubernetes"])
      .default("static")
      .describe("static: the list above. kubernetes: pods of a service or a selector."),
    namespace: z.string().min(1).max(253).default("default").describe("Namespace to watch."),
    service: z.string().min(1).max(253).optional().describe("Service whose endpoint slices name the pods."),
    selector: z.string().min(1).max(1024).optional().describe("Label selector of the pods, instead of a service."),
    port: z.int().min(1).max(65_535).default(8000).describe("Port of the engine in each pod."),
  })
  .refine((value) => value.kind === "static" || (value.service === undefined) !== (value.selector === undefined), {
    path: ["service"],
    message: "a service or a selector, and not both, which kind kubernetes needs",
  });

const routing = z.strictObject({
  profile: z
    .string()
    .min(1)
    .default("gnomon")
    .describe("Profile by name, or the path of a profile file (with a / or .yaml)."),
  models: z.record(z.string(), z.string().min(1)).default({}).describe("Profile per model, where it differs."),
  profileHeader: z
    .string()
    .min(1)
    .max(128)
    .default("x-gnomon-profile")
    .describe("Request header that may choose a profile."),
  profilesAllowed: z
    .array(z.string().min(1))
    .max(64)
    .default([])
    .describe("Profiles that the header may choose; none by default."),
  tenantHeader: z
    .string()
    .min(1)
    .max(128)
    .default("x-gnomon-tenant")
    .describe("Request header that says who asks; else the API key's digest."),
  sessionHeader: z
    .string()
    .min(1)
    .max(128)
    .default("x-session-id")
    .describe("Request header that names the conversation."),
  sloClassHeader: z
    .string()
    .min(1)
    .max(128)
    .default("x-gnomon-slo-class")
    .describe("Request header with the service class."),
  seed: z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(1).describe("Seed of every random draw of the router."),
});

const prefix = z.strictObject({
  blockTokens: z.int().min(1).max(4096).default(16).describe("Tokens per block; the engine's block size."),
  blockHash: z
    .enum(["blake3", "fast"])
    .default("blake3")
    .describe("Chain hash. fast: a two-lane mix, for very long cold prompts."),
  capacityTokens: z
    .int()
    .min(1024)
    .max(1e10)
    .default(500_000)
    .describe("Room per endpoint while the engine has not told its own."),
  secretEnv: environmentName()
    .optional()
    .describe("Variable that holds the key of the block hashes; by default a new random key at every start."),
});

const tokenizerShape = z.strictObject({
  kind: z
    .enum(["estimate", "character", "tiktoken", "huggingface", "vllm"])
    .default("estimate")
    .describe("How prompts become tokens and blocks."),
  file: z
    .string()
    .min(1)
    .optional()
    .describe("tokenizer.json of kind huggingface; its folder may hold the chat template too."),
  chatTemplate: z
    .string()
    .min(1)
    .optional()
    .describe("File with the chat template, where it is not beside the tokenizer."),
  encoding: z
    .enum(["cl100k_base", "o200k_base", "p50k_base", "r50k_base"])
    .default("cl100k_base")
    .describe("Encoding of kind tiktoken."),
  timeoutMillis: millis(1, 60_000)
    .default(200)
    .describe("Bound on one /tokenize call of kind vllm; beyond it the estimate stands in."),
});

const tokenizer = tokenizerShape.refine((value) => value.kind !== "huggingface" || value.file !== undefined, {
  path: ["file"],
  message: "the path of a tokenizer.json, which kind huggingface needs",
});

const scrape = z.strictObject({
  intervalMillis: millis(10, 600_000).default(100).describe("Time between two scrapes of an endpoint's /metrics."),
  timeoutMillis: millis(10, 600_000).default(1000).describe("Bound on one scrape."),
  staleAfterMillis: millis(10, MILLIS_PER_DAY)
    .default(2000)
    .describe("Age from which the router's own ledger replaces scraped signals."),
});

const limits = z.strictObject({
  bodyBytesMax: z
    .int()
    .min(1024)
    .max(1024 * MIB)
    .default(32 * MIB)
    .describe("Largest request body; above it 413."),
  requestsInFlightMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(4096)
    .describe("Requests inside the gateway; above it 503."),
  connectionsPerEndpointMax: z.int().min(1).max(65_535).default(1024).describe("Sockets to one endpoint."),
  attemptsMax: z.int().min(1).max(16).default(3).describe("Tries of one request, the first included."),
  connectMillis: millis(10, 600_000).default(2000).describe("Bound on connecting to an endpoint."),
  firstByteMillis: millis(0, MILLIS_PER_DAY)
    .default(0)
    .describe("Bound on the wait for the answer's first body byte; 0 is none."),
  idleMillis: millis(0, MILLIS_PER_DAY)
    .default(300_000)
    .describe("Longest silence between two chunks of an answer; 0 is none."),
  totalMillis: millis(0, MILLIS_PER_DAY).default(0).describe("Bound on a whole request; 0 is none."),
  drainMillis: millis(0, MILLIS_PER_DAY).default(30_000).describe("Wait for requests in flight at shutdown."),
});

const record = z.strictObject({
  directory: z.string().min(1).optional().describe("Folder for trace segments; recording is on when it is set."),
  bufferBytesMax: z
    .int()
    .min(65_536)
    .max(1024 * MIB)
    .default(16 * MIB)
    .describe("Records waiting to be written; above it whole records are dropped and counted."),
  segmentBytesMax: z
    .int()
    .min(65_536)
    .max(1024 * 1024 * MIB)
    .default(64 * MIB)
    .describe("Compressed size at which a new segment begins."),
  segmentMillisMax: millis(1000, MILLIS_PER_DAY).default(3_600_000).describe("Age at which a new segment begins."),
  flushMillis: millis(10, 60_000).default(250).describe("Longest time that a record waits in memory."),
  fsync: z
    .enum(["never", "segment", "flush"])
    .default("segment")
    .describe("When to force data to the disk: never, as a segment closes, or at every flush."),
  compressionLevel: z.int().min(1).max(19).default(1).describe("zstd level."),
});

const admin = z.strictObject({
  tokenEnv: environmentName()
    .optional()
    .describe("Variable that holds the bearer token of /gnomon/*; without it they answer on loopback only."),
  decisionsKept: z.int().min(0).max(100_000).default(256).describe("Decisions that /gnomon/decisions remembers."),
});

const log = z.strictObject({
  level: z
    .enum(["trace", "debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("Least important level to write, to stderr as JSON lines."),
});

const emulate = z.strictObject({
  count: z.int().min(1).max(64).default(3).describe("Emulated engines."),
  host: z.string().min(1).default("127.0.0.1").describe("Address that the engines listen on."),
  portBase: z
    .int()
    .min(0)
    .max(65_535)
    .default(0)
    .describe("Port of the first engine, the others following; 0 takes free ones."),
  model: z.string().min(1).max(256).default("emulated").describe("Model name that the engines serve."),
  engine: z.string().min(1).optional().describe("Engine file (see config/engines)."),
  timeScale: z.number().gt(0).max(1000).default(1).describe("Emulated seconds per second of wall time."),
});

/** Root of the configuration. Every section may be left out. */
export const CONFIG_SCHEMA = z.strictObject({
  listen: listen.prefault({}).describe("Where the gateway listens."),
  endpoints: z
    .array(endpoint)
    .max(4096)
    .default([])
    .describe("Engines to route to. None, with static discovery: an emulated fleet is started."),
  discovery: discovery.prefault({}).describe("Where endpoints come from."),
  routing: routing.prefault({}).describe("How an endpoint is chosen."),
  prefix: prefix.prefault({}).describe("The prefix index."),
  tokenizer: tokenizerShape
    .extend({ models: z.record(z.string(), tokenizer).default({}).describe("Tokenizer per model, where it differs.") })
    .refine((value) => value.kind !== "huggingface" || value.file !== undefined, {
      path: ["file"],
      message: "the path of a tokenizer.json, which kind huggingface needs",
    })
    .prefault({})
    .describe("Prompts to tokens."),
  scrape: scrape.prefault({}).describe("Signals from the endpoints."),
  limits: limits.prefault({}).describe("Bounds."),
  record: record.prefault({}).describe("The trace recorder."),
  admin: admin.prefault({}).describe("Status pages under /gnomon."),
  log: log.prefault({}).describe("Logs."),
  emulate: emulate.prefault({}).describe("The emulated fleet."),
});

export type Config = z.infer<typeof CONFIG_SCHEMA>;
export type TokenizerConfig = z.infer<typeof tokenizer>;
export type EndpointConfig = z.infer<typeof endpoint>;

function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) return false;
  return url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "";
}
