import assert from "node:assert/strict";
import type { Endpoint, Load } from "#core/endpoint/endpoint.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import type { Signal } from "#core/plugin/plugin.ts";
import type { RouteRequest } from "#core/request/request.ts";

/** Which signals allow a property to be read, any one of them; properties that are not here are facts, not signals. */
const SNAPSHOT: Partial<Record<keyof Snapshot, readonly Signal[]>> = {
  freshness: ["scrape:load", "scrape:kv", "scrape:latency", "scrape:lora", "scrape:power"],
  loadAgeMicros: ["scrape:load", "scrape:kv", "scrape:latency", "scrape:lora", "scrape:power"],
  load: ["scrape:load", "scrape:kv", "scrape:latency", "scrape:lora", "scrape:power"],
  effectiveLoad: ["ledger", "scrape:load"],
  kvUtilization: ["scrape:kv"],
  requestsInFlight: ["ledger"],
  prefillTokensQueued: ["ledger"],
  decodeTokens: ["ledger"],
  promptTokensInFlight: ["ledger"],
  hitBlocks: ["prefix-index"],
  hitTokens: ["prefix-index"],
  cachedBlocks: ["engine-caches"],
  ttftMicros: ["observed-latency"],
  tpotMicros: ["observed-latency"],
};
const LOAD: Partial<Record<keyof Load, readonly Signal[]>> = {
  running: ["scrape:load"],
  waiting: ["scrape:load"],
  kvUtilization: ["scrape:kv"],
  prefixHitRatio: ["scrape:kv"],
  ttftMicros: ["scrape:latency"],
  tpotMicros: ["scrape:latency"],
  tokensPerSecond: ["scrape:latency"],
  adaptersRunning: ["scrape:lora"],
  adaptersWaiting: ["scrape:lora"],
  adaptersMax: ["scrape:lora"],
  watts: ["scrape:power"],
  smUtilization: ["scrape:power"],
};
const ENDPOINT: Partial<Record<keyof Endpoint, readonly Signal[]>> = { labels: ["labels"] };
const REQUEST: Partial<Record<keyof RouteRequest, readonly Signal[]>> = { session: ["session"], tenant: ["tenant"] };

/** The same snapshot, which refuses to give what a plugin that reads these signals has not declared. */
export function guardedSnapshot(snapshot: Snapshot, signals: readonly Signal[]): Snapshot {
  return guarded(snapshot, SNAPSHOT, signals, (key, value) => {
    if (key === "load" && value !== undefined) return guarded(value as Load, LOAD, signals);
    return key === "endpoint" ? guarded(value as Endpoint, ENDPOINT, signals) : value;
  });
}

/** The same for the request. */
export function guardedRequest(request: RouteRequest, signals: readonly Signal[]): RouteRequest {
  return guarded(request, REQUEST, signals);
}

function guarded<T extends object>(
  target: T,
  table: Partial<Record<keyof T, readonly Signal[]>>,
  signals: readonly Signal[],
  inner: (key: keyof T, value: unknown) => unknown = (_key, value) => value,
): T {
  // A proxy must give a frozen target's own values; a copy leaves it free to give guarded ones.
  return new Proxy(
    { ...target },
    {
      get(copy, key) {
        const name = key as keyof T;
        const needed = table[name];
        const declared = needed === undefined || needed.some((signal) => signals.includes(signal));
        assert.ok(declared, `reads ${String(key)}, which needs ${needed?.join(" or ")} among its declared signals`);
        return inner(name, copy[name]);
      },
    },
  );
}
