import type { Load } from "#core/endpoint/endpoint.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { type Random, randomFor } from "#core/base/random.ts";
import type { RouteRequest } from "#core/request/request.ts";

/** A load with every signal unknown but those given. */
export function load(given: Partial<Load>): Load {
  return {
    running: undefined,
    waiting: undefined,
    kvUtilization: undefined,
    prefixHitRatio: undefined,
    ttftMicros: undefined,
    tpotMicros: undefined,
    tokensPerSecond: undefined,
    adaptersRunning: undefined,
    adaptersWaiting: undefined,
    adaptersMax: undefined,
    watts: undefined,
    smUtilization: undefined,
    ...given,
  };
}

/** A frozen snapshot of an idle, never scraped endpoint, with what is given laid over it. */
export function snapshot(given: Partial<Snapshot> & { readonly id: string }): Snapshot {
  return Object.freeze({
    at: 0,
    endpoint: Object.freeze({
      id: given.id,
      models: Object.freeze(["m"]),
      labels: Object.freeze({}),
      kvCapacityTokens: undefined,
      concurrencyMax: undefined,
    }),
    freshness: "unknown" as const,
    loadAgeMicros: -1,
    load: undefined,
    effectiveLoad: 0,
    kvUtilization: 0,
    requestsInFlight: 0,
    prefillTokensQueued: 0,
    decodeTokens: 0,
    promptTokensInFlight: 0,
    hitBlocks: 0,
    hitTokens: 0,
    prefixSource: "approximate" as const,
    ttftMicros: undefined,
    tpotMicros: undefined,
    ...given,
  });
}

/** A chain of `length` blocks that starts like every other chain of the same family. */
export function chain(family: number, length: number, blockTokens = 16): BlockChain {
  const random = randomFor(family, 77);
  const hashes = new Int32Array(2 * length);
  for (let i = 0; i < hashes.length; i++) hashes[i] = random.below(0x1_0000_0000) | 0;
  return { hashes, length, blockTokens };
}

export function request(given: Partial<RouteRequest> & { readonly id: string }): RouteRequest {
  const blocks = given.blocks ?? chain(1, 4);
  return {
    model: "m",
    tenant: "",
    session: "",
    sloClass: "",
    priority: 0,
    promptTokens: blocks.length * blocks.blockTokens + 3,
    promptTokensExact: true,
    outputTokensMax: undefined,
    sequences: 1,
    profile: "",
    ...given,
    blocks,
  };
}

/** A request and 1 to `countMax` candidates in order of id, every signal drawn, with equal values common. */
export function drawState(random: Random, countMax: number): { request: RouteRequest; candidates: Snapshot[] } {
  const blocks = random.below(12);
  const asked = request({
    id: `r${random.below(1e9)}`,
    blocks: chain(random.below(5), blocks),
    session: `s${random.below(4)}`,
  });
  const count = 1 + random.below(countMax);
  const candidates = Array.from({ length: count }, (_, i) =>
    drawSnapshot(random, `e${String(i).padStart(4, "0")}`, asked),
  );
  return { request: asked, candidates };
}

function drawSnapshot(random: Random, id: string, asked: RouteRequest): Snapshot {
  const scraped = random.below(3);
  const inFlight = random.below(20);
  const hitBlocks = random.below(asked.blocks.length + 1);
  const prefillTokensQueued = random.below(4) * 700;
  const kvUtilization = random.below(5) === 0 ? random.below(2) : random.next();
  return snapshot({
    id,
    freshness: (["unknown", "stale", "fresh"] as const)[scraped]!,
    loadAgeMicros: scraped === 0 ? -1 : random.below(5_000_000),
    load:
      scraped === 0
        ? undefined
        : Object.freeze(
            load({
              running: random.below(30),
              waiting: random.below(30),
              kvUtilization,
              prefixHitRatio: id.length % 2 === 0 ? undefined : hitBlocks / 12,
              ttftMicros: random.below(1e6),
              watts: random.below(700),
            }),
          ),
    effectiveLoad: inFlight + random.below(10),
    kvUtilization,
    requestsInFlight: inFlight,
    prefillTokensQueued,
    decodeTokens: random.below(50_000),
    promptTokensInFlight: prefillTokensQueued + random.below(20_000),
    hitBlocks,
    cachedBlocks: hitBlocks >> 1,
    hitTokens: Math.min(hitBlocks * 16, asked.promptTokens - 1),
    ttftMicros: random.below(2) === 0 ? undefined : 1 + random.below(1e6),
    tpotMicros: random.below(2) === 0 ? undefined : 1 + random.below(1e5),
  });
}
