import * as z from "zod";
import { admin } from "./admin-section.ts";
import { admission } from "./admission-section.ts";
import { autopilot } from "./autopilot-section.ts";
import { cascade } from "./cascade-section.ts";
import { discovery } from "./discovery-section.ts";
import { emulate } from "./emulate-section.ts";
import { endpoint } from "./endpoint-section.ts";
import { health } from "./health-section.ts";
import { kvEvents } from "./kv-events-section.ts";
import { limits } from "./limits-section.ts";
import { listen } from "./listen-section.ts";
import { log } from "./log-section.ts";
import { metrics } from "./metrics-section.ts";
import { picker } from "./picker-section.ts";
import { policy, profiles } from "./policy-section.ts";
import { power } from "./power-section.ts";
import { record } from "./record-section.ts";
import { rollout } from "./rollout-section.ts";
import { routes } from "./routes-section.ts";
import { clients, prefix, routing, tokenizer, tokenizerCacheFolder, tokenizerShape } from "./routing-section.ts";
import { scrape } from "./scrape-section.ts";
import { shadow } from "./shadow-section.ts";
import { share } from "./share-section.ts";
import { slo } from "./slo-section.ts";
import { tap } from "./tap-section.ts";
import { engineTls } from "./tls-section.ts";
import { tracing } from "./tracing-section.ts";

/**
 * Root of the configuration: shape, bounds, default and meaning of every key, each stated in its section and nowhere else.
 * The description of every key, the names of the environment variables and config/default.yaml are generated from it. Every
 * section may be left out.
 */
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
  tap: tap.prefault({}).describe("In front of another router, which decides."),
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
