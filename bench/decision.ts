/**
 * What one decision costs: Router.accept of an arrival (match, filter, score, pick, charge, insert) against endpoints,
 * prompt length and profile. Prints microseconds of the deciding thread's CPU, so that what else runs on the machine makes
 * no tail: the kernel's time for others is not in it, garbage that the thread collects is.
 *
 *     npx node bench/decision.ts [--profiles | --events | --predicted] [--rounds 3] [--beside FOLDER]
 *
 * Every case is decided in rounds, the same requests each time by a router of its own. p50 and p99 are of the middle round
 * each; `least p99` is over the requests, each at its least of all rounds: the work of a decision itself, without
 * collections, and what caches lost to other processes.
 *
 * With --events each case is measured once more with engines that report their caches (KV events), beside the guess.
 * With --predicted it is gnomon, gnomon-predicted and gnomon-predicted behind the filter slo-headroom, at 5, 25 and 100
 * endpoints.
 *
 * With --beside a checkout of another commit each case is measured in turns with the router of that one, and a line has the
 * lowest p50 and least p99 of each and their ratios: what a change costs, on a busy machine too.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import * as indexModule from "#core/prefix/dual-index.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { randomFor } from "#core/base/random.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import * as routerModule from "#core/router.ts";
import { threadCpuMillis } from "./thread-cpu.ts";

const BLOCK_TOKENS = 16;
const WARM_UP_DECISIONS = 3_000;
const DECISIONS = 6_000;
/** Requests in flight at once, as a busy gateway has them. */
const IN_FLIGHT = 400;

interface Case {
  readonly endpoints: number;
  readonly tokens: number;
  /** Share of the prompt that earlier requests had. */
  readonly shared: number;
  readonly profile: string;
  /** Engines report what they store and remove. */
  readonly events?: boolean;
}

/** What of a checkout decides. */
interface Checkout {
  readonly Router: typeof routerModule.Router;
  readonly DualIndex: typeof indexModule.DualIndex;
}

const OWN: Checkout = { Router: routerModule.Router, DualIndex: indexModule.DualIndex };
const TURNS_BESIDE = 5;
/** Readings of the clock in a row, by which it is known what one takes. */
const CLOCK_READINGS = 2_000;

const { values } = parseArgs({
  options: {
    profiles: { type: "boolean" },
    events: { type: "boolean" },
    predicted: { type: "boolean" },
    rounds: { type: "string", default: "3" },
    beside: { type: "string" },
  },
});

const given: Case[] = values.profiles
  ? profileNames().map((profile) => ({ endpoints: 100, tokens: 8_192, shared: 0.9, profile }))
  : [8, 100].flatMap((endpoints) =>
      [8_192, 100_000].flatMap((tokens) =>
        [0, 0.9, 1].map((shared) => ({ endpoints, tokens, shared, profile: "gnomon" })),
      ),
    );

const cases: readonly Case[] = values.events
  ? given.filter(({ endpoints }) => endpoints === 100).flatMap((one) => [one, { ...one, events: true }])
  : values.predicted
    ? [5, 25, 100].flatMap((endpoints) =>
        ["gnomon-added", "gnomon", "gnomon with slo-headroom"].map((profile) => ({
          endpoints,
          tokens: 8_192,
          shared: 0.9,
          profile,
        })),
      )
    : given;

function specOf(profile: string): ProfileSpec {
  const [name, filter] = profile.split(" with ");
  const { spec } = loadProfile(name!);
  if (filter === undefined) return spec;
  const parameters = { ttftTargetMillis: 1_000, tpotTargetMillis: 50 };
  return { ...spec, filters: [...spec.filters, { plugin: filter, parameters }] };
}

/** Microseconds of each decision, in order. */
function round(
  { endpoints, tokens, shared, profile, events = false }: Case,
  { Router, DualIndex }: Checkout,
): Float64Array {
  const router = new Router({
    seed: 1,
    profiles: { [profile]: specOf(profile) },
    defaultProfile: profile,
    index: new DualIndex(),
    blockTokens: BLOCK_TOKENS,
    staleAfterMicros: 5_000_000,
  });
  for (let i = 0; i < endpoints; i++) {
    const id = `http://10.0.${i >> 8}.${i & 255}:8000`;
    const endpoint = { id, models: ["m"], labels: {}, kvCapacityTokens: 500_000, concurrencyMax: 256 };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
    if (events) router.accept({ kind: "kv-events-alive", at: 0, endpoint: id, isComplete: true });
  }
  const caches = events ? new ReportedCaches(router) : undefined;
  const few = tokens > 50_000;
  const decisions = few ? DECISIONS / 4 : DECISIONS;
  const chains = promptChains(tokens, shared, decisions + WARM_UP_DECISIONS);
  const micros = new Float64Array(decisions);
  for (let i = -WARM_UP_DECISIONS / (few ? 4 : 1); i < decisions; i++) {
    const at = 1_000 * (i + WARM_UP_DECISIONS);
    const id = `r${i}`;
    const request = {
      id,
      model: "m",
      tenant: `t${i & 15}`,
      session: "",
      sloClass: "",
      priority: 0,
      promptTokens: tokens + 5,
      promptTokensExact: true,
      outputTokensMax: undefined,
      sequences: 1,
      blocks: chains(),
      profile: "",
    };
    const started = threadCpuMillis();
    const decision = router.accept({ kind: "request-arrived", at, request });
    const took = (threadCpuMillis() - started) * 1000 - CLOCK_MICROS;
    if (decision.kind === "routed") caches?.computed(at, decision.endpoint, request.blocks);
    if (i >= 0) micros[i] = took;
    const over = i - IN_FLIGHT;
    if (over < -WARM_UP_DECISIONS / (few ? 4 : 1)) continue;
    router.accept({ kind: "first-token", at, requestId: `r${over}` });
    router.accept({
      kind: "request-finished",
      at,
      requestId: `r${over}`,
      outcome: "ok",
      promptTokens: tokens,
      cachedTokens: 0,
      outputTokens: 50,
    });
  }
  return micros;
}

interface Least {
  readonly p50: number;
  readonly p99: number;
}

interface Cost extends Least {
  readonly leastP99: number;
  readonly mean: number;
}

function measure(one: Case, rounds: number): Cost {
  const all = Array.from({ length: rounds }, () => round(one, OWN));
  const middle = (of: (each: Float64Array) => number): number => {
    const sorted = all.map(of).sort((a, b) => a - b);
    return sorted[sorted.length >> 1]!;
  };
  return {
    p50: middle((each) => quantile(each, 0.5)),
    p99: middle((each) => quantile(each, 0.99)),
    leastP99: leastOf(all).p99,
    mean: middle((each) => each.reduce((sum, value) => sum + value, 0) / each.length),
  };
}

/** The lowest p50 of a round, and the p99 of requests each at its least. */
function leastOf(rounds: readonly Float64Array[]): Least {
  const least = rounds[0]!.map((_, i) => rounds.reduce((low, each) => Math.min(low, each[i]!), Infinity));
  return { p50: Math.min(...rounds.map((each) => quantile(each, 0.5))), p99: quantile(least, 0.99) };
}

function quantile(values: Float64Array, share: number): number {
  const sorted = values.toSorted();
  return sorted[Math.floor(share * sorted.length)]!;
}

/** What reading the clock twice adds to what lies between. */
function clockMicros(): number {
  const readings = Float64Array.from({ length: CLOCK_READINGS }, () => {
    const before = threadCpuMillis();
    return (threadCpuMillis() - before) * 1000;
  });
  return quantile(readings.subarray(CLOCK_READINGS / 2), 0.5);
}

/** Prompts of 64 families; the first `shared` of each is its family's, the rest is new. */
function promptChains(tokens: number, shared: number, count: number): () => BlockChain {
  const length = Math.floor(tokens / BLOCK_TOKENS);
  const random = randomFor(3, count);
  const families = Array.from({ length: 64 }, () => {
    const hashes = new Int32Array(2 * length);
    for (let i = 0; i < hashes.length; i++) hashes[i] = random.below(2 ** 32) | 0;
    return hashes;
  });
  return () => {
    const hashes = families[random.below(families.length)]!.slice();
    for (let i = 2 * Math.floor(length * shared); i < hashes.length; i++) hashes[i] = random.below(2 ** 32) | 0;
    return { hashes, length, blockTokens: BLOCK_TOKENS };
  };
}

/** Room of an engine in blocks, as the endpoints state it. */
const ROOM_BLOCKS = Math.floor(500_000 / BLOCK_TOKENS);

/**
 * Engines that report what a prompt adds to their caches, and what they overwrite for it, the oldest prompt's tail
 * first.
 */
class ReportedCaches {
  readonly #router: routerModule.Router;
  readonly #caches = new Map<string, { readonly held: Set<number>; stored: Int32Array[]; blocks: number }>();

  constructor(router: routerModule.Router) {
    this.#router = router;
  }

  computed(at: number, endpoint: string, { hashes, length }: BlockChain): void {
    const cache = this.#caches.get(endpoint) ?? { held: new Set(), stored: [], blocks: 0 };
    this.#caches.set(endpoint, cache);
    let known = 0;
    while (known < length && cache.held.has(hashes[2 * known]!)) known++;
    const fresh = hashes.slice(2 * known);
    while (cache.blocks + fresh.length / 2 > ROOM_BLOCKS) {
      const oldest = cache.stored.shift()!;
      cache.blocks -= oldest.length / 2;
      for (let i = 0; i < oldest.length; i += 2) cache.held.delete(oldest[i]!);
      this.#router.accept({ kind: "blocks-removed", at, endpoint, hashes: tailFirst(oldest) });
    }
    for (let i = 0; i < fresh.length; i += 2) cache.held.add(fresh[i]!);
    if (fresh.length === 0) return;
    cache.stored.push(fresh);
    cache.blocks += fresh.length / 2;
    this.#router.accept({ kind: "blocks-stored", at, endpoint, hashes: fresh });
  }
}

function tailFirst(hashes: Int32Array): Int32Array {
  const turned = new Int32Array(hashes.length);
  for (let i = 0; i < hashes.length; i += 2) {
    turned[hashes.length - 2 - i] = hashes[i]!;
    turned[hashes.length - 1 - i] = hashes[i + 1]!;
  }
  return turned;
}

/** The lowest of each in turns; both begin as often. */
function besideOf(one: Case, other: Checkout): { readonly own: Least; readonly beside: Least } {
  const own: Float64Array[] = [];
  const beside: Float64Array[] = [];
  for (let turn = 0; turn < TURNS_BESIDE; turn++) {
    for (const checkout of turn % 2 === 0 ? [OWN, other] : [other, OWN]) {
      (checkout === OWN ? own : beside).push(round(one, checkout));
    }
  }
  return { own: leastOf(own), beside: leastOf(beside) };
}

async function checkoutIn(folder: string): Promise<Checkout> {
  const [router, index] = (await Promise.all([
    import(resolve(folder, "src/core/router.ts")),
    import(resolve(folder, "src/core/prefix/dual-index.ts")),
  ])) as [typeof routerModule, typeof indexModule];
  return { Router: router.Router, DualIndex: index.DualIndex };
}

function shown(columns: readonly (number | string)[]): string {
  return columns.map((value) => (typeof value === "number" ? value.toFixed(2) : value).padStart(10)).join("");
}

const CLOCK_MICROS = clockMicros();
const rounds = Number(values.rounds);
const other = values.beside === undefined ? undefined : await checkoutIn(values.beside);
const figures =
  other === undefined
    ? ["p50 us", "p99 us", "least p99", "mean us"]
    : ["p50 us", "beside", "ratio", "least p99", "beside", "ratio"];
console.log("profile".padEnd(40) + shown(["endpoints", "tokens", "shared", ...figures]));
for (const one of cases) {
  const name = one.events === true ? `${one.profile}, events` : one.profile;
  const head = name.padEnd(40) + shown([String(one.endpoints), String(one.tokens), String(one.shared)]);
  if (other === undefined) {
    const { p50, p99, leastP99, mean } = measure(one, rounds);
    console.log(head + shown([p50, p99, leastP99, mean]));
  } else {
    const { own, beside } = besideOf(one, other);
    console.log(head + shown([own.p50, beside.p50, own.p50 / beside.p50, own.p99, beside.p99, own.p99 / beside.p99]));
  }
}
