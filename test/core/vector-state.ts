import { readFileSync } from "node:fs";
import type { Load } from "#core/endpoint/endpoint.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { chain, load, request, snapshot } from "./state.ts";

/** An endpoint as the vectors write it; what is left out is idle and, but for `stale`, freshly scraped. */
export interface VectorEndpoint {
  readonly waiting?: number;
  readonly running?: number;
  readonly kv?: number;
  readonly hit?: number;
  readonly inFlight?: number;
  readonly prefill?: number;
  readonly stale?: boolean;
  readonly watts?: number;
  readonly adaptersRunning?: readonly string[];
  readonly adaptersWaiting?: readonly string[];
  readonly adaptersMax?: number;
}

export interface VectorRequest {
  readonly model?: string;
  readonly blocks?: number;
  readonly blockTokens?: number;
  readonly promptTokens?: number;
}

export function readVectors<T>(file: string): T {
  return JSON.parse(readFileSync(new URL(`../golden/policies/${file}`, import.meta.url), "utf8")) as T;
}

export function vectorRequest({
  model = "m",
  blocks = 0,
  blockTokens = 16,
  promptTokens,
}: VectorRequest): RouteRequest {
  return request({
    id: "v",
    model,
    blocks: chain(1, blocks, blockTokens),
    promptTokens: promptTokens ?? blocks * blockTokens + 1,
  });
}

export function vectorSnapshots(endpoints: readonly VectorEndpoint[], blockTokens = 16): Snapshot[] {
  return endpoints.map((given, i) => {
    const scraped: Partial<Load> = {
      running: given.running ?? 0,
      waiting: given.waiting ?? 0,
      kvUtilization: given.kv ?? 0,
      adaptersRunning: given.adaptersRunning,
      adaptersWaiting: given.adaptersWaiting,
      adaptersMax: given.adaptersMax,
    };
    return snapshot({
      id: `e${String(i).padStart(2, "0")}`,
      freshness: given.stale === true ? "stale" : "fresh",
      loadAgeMicros: given.stale === true ? 9e9 : 0,
      load: load(scraped),
      effectiveLoad: given.inFlight ?? 0,
      kvUtilization: given.kv ?? 0,
      requestsInFlight: given.inFlight ?? 0,
      prefillTokensQueued: given.prefill ?? 0,
      hitBlocks: given.hit ?? 0,
      hitTokens: (given.hit ?? 0) * blockTokens,
    });
  });
}
