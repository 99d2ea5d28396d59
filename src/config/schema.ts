import * as z from "zod";
import { admission } from "./admission-section.ts";
import { admin } from "./admin-section.ts";
import { autopilot } from "./autopilot-section.ts";
import { cascade } from "./cascade-section.ts";
import { discovery } from "./discovery-section.ts";
import { endpoint } from "./endpoint-section.ts";
import { emulate } from "./emulate-section.ts";
import { health } from "./health-section.ts";
import { kvEvents } from "./kv-events-section.ts";
import { limits } from "./limits-section.ts";
import { picker } from "./picker-section.ts";
import { policy, profiles } from "./policy-section.ts";
import { rollout } from "./rollout-section.ts";
import { clients, prefix, routing, tokenizer, tokenizerCacheFolder, tokenizerShape } from "./routing-section.ts";
import { engineTls, listenTls } from "./tls-section.ts";
import { tracing } from "./tracing-section.ts";
import { share } from "./share-section.ts";
import { slo } from "./slo-section.ts";
import { routes } from "./routes-section.ts";
import { MIB, MILLIS_PER_DAY, millis } from "./schema-value.ts";

/**
 * The whole configuration: shape, bounds, default and meaning, each stated here and nowhere else. The description of every
 * key, the names of the environment variables and config/default.yaml are generated from this schema.
 */

const listen = z.strictObject({
  host: z.string().min(1).default("127.0.0.1").describe("Address to listen on."),
  port: z.int().min(0).max(65_535).default(8080).describe("Port to listen on; 0 takes a free one."),
  workers: z
    .int()
    .min(1)
    .max(64)
    .default(1)
    .describe(
      "Threads that forward requests, all on the same port (Linux); above 1 another thread decides for all of them, and limits of what is held at once are divided among them.",
    ),
  warmUpMillis: millis(0, 60_000)
    .default(1000)
    .describe(
      "Longest time for which made-up requests run before the gateway is ready, so that the first real ones meet compiled code: once for the decision, once for the whole path in every thread; 0 for a quick start with slow first requests.",
    ),
  drainNoticeMillis: millis(0, MILLIS_PER_DAY)
    .optional()
    .describe(
      "After a stop signal, time in which /readyz fails and requests are still taken, so that load balancers learn of it; unset: 5000 in a Kubernetes pod, else 0.",
    ),
  drainMillis: millis(0, MILLIS_PER_DAY)
    .default(30_000)
    .describe(
      "Longest wait for requests in flight after that; new requests are refused, and /metrics answers until the end.",
    ),
  tls: listenTls.prefault({}).describe("TLS towards clients."),
});

const scrape = z.strictObject({
  intervalMillis: millis(10, 600_000).default(1000).describe("Time between two scrapes of a server's /metrics."),
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
});

const power = z.strictObject({
  exporters: z
    .array(z.url().max(1024))
    .max(1024)
    .default([])
    .describe("Metrics pages of DCGM exporters, for power and multiprocessor activity; none by default."),
  devices: z
    .record(z.string(), z.record(z.string(), z.string()))
    .default({})
    .describe(
      "Endpoint id to labels of its GPUs, values comma-separated: {gpu-7: {Hostname: n7, gpu: '0,1'}}. Pods have theirs by the label pod.",
    ),
  intervalMillis: millis(100, 600_000).default(5000).describe("Time between two reads of an exporter."),
  timeoutMillis: millis(10, 600_000).default(2000).describe("Time limit of one read."),
  staleAfterMillis: millis(100, MILLIS_PER_DAY).default(15_000).describe("Age above which a page is ignored."),
});

const record = z
  .strictObject({
    directory: z.string().min(1).optional().describe("Folder for trace segments; recording is on when it is set."),
    bufferBytesMax: z
      .int()
      .min(65_536)
      .max(1024 * MIB)
      .default(16 * MIB)
      .describe("Bytes of records waiting to be written; above that whole records are dropped and counted."),
    segmentBytesMax: z
      .int()
      .min(65_536)
      .max(1024 * 1024 * MIB)
      .default(64 * MIB)
      .describe("Compressed size at which a new segment begins."),
    segmentMillisMax: millis(1000, MILLIS_PER_DAY).default(3_600_000).describe("Age at which a new segment begins."),
    bytesMax: z
      .int()
      .min(131_072)
      .max(1024 * 1024 * 1024 * MIB)
      .default(16_384 * MIB)
      .describe(
        "Compressed size of all segments in the folder; above that whole segments are removed, the oldest first.",
      ),
    ageMaxHours: z
      .number()
      .min(0.01)
      .max(1_000_000)
      .optional()
      .describe("Hours since its last record after which a segment is removed; unset keeps them however old."),
    flushMillis: millis(10, 60_000).default(250).describe("Longest time that a record waits in memory."),
    fsync: z
      .enum(["never", "segment", "flush"])
      .default("segment")
      .describe("When to force data to the disk: never, as a segment closes, or at every flush."),
    candidatesMax: z
      .int()
      .min(0)
      .max(4096)
      .default(4)
      .describe("Candidates written with each decision, the chosen one first; a digest covers all of them."),
    compressionLevel: z.int().min(1).max(19).default(1).describe("zstd level."),
  })
  .refine((value) => value.bytesMax >= 2 * value.segmentBytesMax, {
    path: ["bytesMax"],
    message: "at least twice segmentBytesMax",
  });

const metrics = z.strictObject({
  modelsMax: z
    .int()
    .min(1)
    .max(10_000)
    .default(64)
    .describe("Most models with series of their own; the others share one."),
  endpointsMax: z.int().min(1).max(10_000).default(512).describe("Endpoints with series of their own."),
  tenantsMax: z
    .int()
    .min(1)
    .max(10_000)
    .default(64)
    .describe("Most tenants with series of their own; the others share one."),
  processMetrics: z.boolean().default(true).describe("CPU, memory and event loop of this process."),
});

const shadow = z.strictObject({
  enabled: z.boolean().default(false).describe("Run replay and what-if on a thread beside the gateway."),
  profiles: z
    .array(z.string().min(1))
    .max(32)
    .default(["round-robin", "llm-d", "lmetric"])
    .describe("Profiles that it evaluates, by name or path."),
  engine: z
    .string()
    .min(1)
    .default("emulated-default")
    .describe("Engine model to start with, ideally written by `gnomon calibrate`; a name in config/engines or a path."),
  calibrate: z
    .enum(["continuous", "off"])
    .default("continuous")
    .describe(
      "Whether the engine model follows the traffic: it is fitted to the latest requests, and replaced if the new fit predicts no worse.",
    ),
  stepTimes: z
    .boolean()
    .default(false)
    .describe(
      "Give the router the fitted step times of endpoints whose engine is not configured: predicted-latency starts from them, and again after each fit that differs by a twentieth.",
    ),
  calibrateEvery: z.int().min(1).max(1000).default(1).describe("Evaluations from one fit to the next."),
  calibrateRequestsMax: z
    .int()
    .min(100)
    .max(20_000)
    .default(1000)
    .describe("Latest requests of the window that a fit uses; 1,000 take 1 to 4 s of a core."),
  cpuShareMax: z
    .number()
    .min(0.01)
    .max(1)
    .default(0.1)
    .describe("Largest share of one core for fits and evaluations; replaying recorded inputs is additional."),
  intervalMillis: millis(1000, MILLIS_PER_DAY).default(60_000).describe("Time between two evaluations."),
  predictMillis: millis(100, MILLIS_PER_DAY)
    .default(2_000)
    .describe(
      "Time between two predictions of the requests that a rollout compares, which have a CPU share of their own.",
    ),
  windowRequests: z.int().min(10).max(1_000_000).default(2000).describe("Latest requests that an evaluation uses."),
  requestsMin: z.int().min(1).max(1_000_000).default(50).describe("Fewest requests for an evaluation."),
  bufferBytesMax: z
    .int()
    .min(65_536)
    .max(1024 * MIB)
    .default(16 * MIB)
    .describe("Bytes of records on their way to the shadow; above that whole records are dropped and counted."),
  heapMegabytesMax: z.int().min(64).max(65_536).default(512).describe("Heap of its thread."),
});

const log = z.strictObject({
  level: z
    .enum(["trace", "debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("Lowest level that is logged, to stderr as JSON lines."),
  access: z
    .enum(["off", "stdout"])
    .default("off")
    .describe("One JSON line per inference request, whatever the level; never prompts or keys."),
});

/** Root of the configuration. Every section may be left out. */
export const CONFIG_SCHEMA = z.strictObject({
  listen: listen.prefault({}).describe("Where the gateway listens."),
  picker: picker.prefault({}).describe("Where a proxy asks which endpoint a request goes to."),
  endpoints: z
    .array(endpoint)
    .max(4096)
    .default([])
    .describe("Engines to route to. With none here and no other source in discovery, an emulated fleet is started."),
  discovery: discovery.prefault({}).describe("Where endpoints come from."),
  engineTls: engineTls.prefault({}).describe("TLS towards engines whose URL is https."),
  routing: routing.prefault({}).describe("How an endpoint is chosen."),
  profiles,
  cascade: cascade.prefault({}).describe("Models that are asked one after another."),
  admission: admission.prefault({}).describe("Which requests are admitted, queued and refused."),
  slo: slo.prefault({}).describe("Latency targets of requests; counted as goodput."),
  policy: policy.prefault({}).describe("Changes of profiles, routing, admission and limits while the gateway runs."),
  rollout: rollout.prefault({}).describe("Rollouts of one profile against another on live traffic."),
  clients: clients.prefault({}).describe("Who asks."),
  routes: routes.prefault({}).describe("What passes to engines beside the known routes of inference."),
  kvEvents: kvEvents.prefault({}).describe("What engines report of their caches."),
  prefix: prefix.prefault({}).describe("The prefix index."),
  tokenizer: tokenizerShape
    .extend({
      models: z.record(z.string(), tokenizer).default({}).describe("Tokenizer per model, if it differs."),
      cacheFolder: tokenizerCacheFolder,
    })
    .refine((value) => value.kind !== "huggingface" || value.file !== undefined, {
      path: ["file"],
      message: "the path of a tokenizer.json or its folder, which kind huggingface needs",
    })
    .prefault({})
    .describe("Prompts to tokens."),
  scrape: scrape.prefault({}).describe("Signals from the endpoints."),
  health: health.prefault({}).describe("Endpoints that hang."),
  power: power.prefault({}).describe("Power and activity of the endpoints' GPUs."),
  limits: limits.prefault({}).describe("Bounds."),
  record: record.prefault({}).describe("The trace recorder."),
  share: share.prefault({}).describe("Several gateways in front of the same endpoints."),
  shadow: shadow.prefault({}).describe("The shadow simulator beside the gateway."),
  autopilot: autopilot.prefault({}).describe("Better policies that the shadow proposes."),
  metrics: metrics.prefault({}).describe("Prometheus page at /metrics."),
  tracing: tracing.prefault({}).describe("Spans of requests, by OpenTelemetry."),
  admin: admin.prefault({}).describe("Status pages under /gnomon."),
  log: log.prefault({}).describe("Logs."),
  emulate: emulate.prefault({}).describe("The emulated fleet."),
});

export type Config = z.infer<typeof CONFIG_SCHEMA>;
export type TokenizerConfig = z.infer<typeof tokenizer>;
