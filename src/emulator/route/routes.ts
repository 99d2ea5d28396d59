import { SCALE_OUT_DISABLED } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import type { PoolingOptions, ResolvedOptions } from "../service/options.ts";
import type { Service } from "../service/service.ts";
import { handleLoadAdapter, handleUnloadAdapter } from "./adapters.ts";
import { handleAddFault, handleClearFaults, handleListFaults, handleStats } from "./admin.ts";
import { handleChat, handleChatBatch } from "./chat.ts";
import { handleCohereEmbed, handleEmbeddings } from "./embeddings.ts";
import { handleClassify, handlePooling } from "./pooling.ts";
import { handleRerank, handleScore } from "./scores.ts";
import { handleIsSleeping, handleSleep, handleWakeUp } from "./sleep.ts";
import { handleCompletions } from "./completions.ts";
import { freeIfRefused } from "./free-if-refused.ts";
import { SIDE_CHANNEL_PATH } from "../kv-transfer/side-channel.ts";
import { handleKvBlocks, handleKvTransferFaults } from "./kv-blocks.ts";
import { handleInvocations } from "./invocations.ts";
import { handleEventSources, handleKvEventFaults, handleResetPrefixCache } from "./kv-events.ts";
import { handleCountTokens, handleMessages } from "./messages.ts";
import { handleModels } from "./models.ts";
import { handleResponses } from "./responses.ts";
import { handleHealth, handleLoad, handleMetrics, handleVersion } from "./status.ts";
import { handleDetokenize, handleTokenize } from "./tokenize.ts";

/** One method of one path. */
export type EmulatorRoute =
  | { readonly kind: "plain"; readonly handle: (service: Service, exchange: ServedRequest) => void }
  | {
      readonly kind: "json";
      readonly handle: (service: Service, exchange: ServedRequest, body: JsonObject) => Promise<void> | void;
      /** Generates: faults without a path of their own apply to it. */
      readonly inference: boolean;
    };

/** Methods of a path, in the order in which the server registered them: its 405 names the first. */
export type RouteTable = ReadonlyMap<string, ReadonlyMap<string, EmulatorRoute>>;

type Served = Pick<ResolvedOptions, "faults" | "pooling" | "sleepMode">;

/** The routes of a server, vLLM's and the emulator's own. */
export function routeTable({ faults, pooling, sleepMode }: Served): RouteTable {
  const made = pooling === undefined ? GENERATION : poolingRoutes(pooling);
  const table = new Map<string, ReadonlyMap<string, EmulatorRoute>>([...made, ...COMMON]);
  if (sleepMode) for (const [path, methods] of SLEEP) table.set(path, methods);
  if (faults) for (const [path, methods] of ADMIN) table.set(path, methods);
  return table;
}

const plain = (handle: (service: Service, exchange: ServedRequest) => void): EmulatorRoute => ({
  kind: "plain",
  handle,
});
const json = (handle: Extract<EmulatorRoute, { kind: "json" }>["handle"]): EmulatorRoute => ({
  kind: "json",
  handle,
  inference: false,
});
const inference = (handle: Extract<EmulatorRoute, { kind: "json" }>["handle"]): EmulatorRoute => ({
  kind: "json",
  handle,
  inference: true,
});
const disabled = plain(() => {
  throw SCALE_OUT_DISABLED;
});
const get = (route: EmulatorRoute) => new Map([["GET", route]]);
const post = (route: EmulatorRoute) => new Map([["POST", route]]);

type Routes = readonly (readonly [string, ReadonlyMap<string, EmulatorRoute>])[];

const GENERATION: Routes = [
  ["/v1/chat/completions", post(inference(freeIfRefused(handleChat)))],
  ["/v1/completions", post(inference(freeIfRefused(handleCompletions)))],
  ["/v1/chat/completions/batch", post(inference(handleChatBatch))],
  ["/v1/messages", post(inference(handleMessages))],
  ["/v1/messages/count_tokens", post(json(handleCountTokens))],
  ["/v1/responses", post(inference(handleResponses))],
  ["/invocations", post(inference(handleInvocations))],
  ["/v1/chat/completions/render", post(disabled)],
  ["/v1/completions/render", post(disabled)],
  ["/v1/messages/render", post(disabled)],
  ["/inference/v1/generate", post(disabled)],
  ["/inference/v1/abort_requests", post(disabled)],
];

const SCORES: Routes = [
  ...["/score", "/v1/score"].map((path) => [path, post(inference(handleScore))] as const),
  ...["/rerank", "/v1/rerank", "/v2/rerank"].map((path) => [path, post(inference(handleRerank))] as const),
];

/** Embeddings are compared; of classes one alone is a score. */
function poolingRoutes({ task, size }: PoolingOptions): Routes {
  const pooled = ["/pooling", post(inference(handlePooling))] as const;
  if (task === "classify")
    return [pooled, ["/classify", post(inference(handleClassify))], ...(size === 1 ? SCORES : [])];
  const embeddings = ["/v1/embeddings", post(inference(handleEmbeddings))] as const;
  return [pooled, embeddings, ["/v2/embed", post(inference(handleCohereEmbed))], ...SCORES];
}

const COMMON: Routes = [
  ["/v1/models", get(plain(handleModels))],
  ["/v1/load_lora_adapter", post(json(handleLoadAdapter))],
  ["/v1/unload_lora_adapter", post(json(handleUnloadAdapter))],
  ["/tokenize", post(json(handleTokenize))],
  ["/detokenize", post(json(handleDetokenize))],
  ["/health", get(plain(handleHealth))],
  [
    "/ping",
    new Map([
      ["GET", plain(handleHealth)],
      ["POST", plain(handleHealth)],
    ]),
  ],
  ["/version", get(plain(handleVersion))],
  ["/load", get(plain(handleLoad))],
  ["/kv_event_sources", get(plain(handleEventSources))],
  ["/metrics", get(plain(handleMetrics))],
];

const SLEEP: Routes = [
  ["/sleep", post(plain(handleSleep))],
  ["/wake_up", post(plain(handleWakeUp))],
  ["/is_sleeping", get(plain(handleIsSleeping))],
];

const ADMIN: Routes = [
  [
    "/emulator/faults",
    new Map([
      ["GET", plain(handleListFaults)],
      ["POST", json(handleAddFault)],
      ["DELETE", plain(handleClearFaults)],
    ]),
  ],
  ["/emulator/stats", get(plain(handleStats))],
  ["/emulator/kv-events", post(json(handleKvEventFaults))],
  [SIDE_CHANNEL_PATH, post(json(handleKvBlocks))],
  ["/emulator/kv-transfer", post(json(handleKvTransferFaults))],
  ["/reset_prefix_cache", post(plain(handleResetPrefixCache))],
];
