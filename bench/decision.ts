/**
 * What one decision costs: Router.accept of an arrival (match, filter, score, pick, charge, insert) against endpoints,
 * prompt length and profile. Prints microseconds.
 *
 *     npx node bench/decision.ts [--profiles]
 */
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { randomFor } from "#core/random.ts";
import { Router } from "#core/router.ts";

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
}

const cases: Case[] = process.argv.includes("--profiles")
  ? profileNames().map((profile) => ({ endpoints: 100, tokens: 8_192, shared: 0.9, profile }))
  : [8, 100].flatMap((endpoints) =>
      [8_192, 100_000].flatMap((tokens) =>
        [0, 0.9, 1].map((shared) => ({ endpoints, tokens, shared, profile: "gnomon" })),
      ),
    );

console.log("profile                    endpoints   tokens  shared     p50 us     p99 us   mean us");
for (const one of cases) {
  const { p50, p99, mean } = measure(one);
  const cell = (value: number | string, width: number) => String(value).padStart(width);
  console.log(
    `${one.profile.padEnd(26)} ${cell(one.endpoints, 9)} ${cell(one.tokens, 8)} ${cell(one.shared, 7)} ${cell(p50.toFixed(1), 10)} ${cell(p99.toFixed(1), 10)} ${cell(mean.toFixed(1), 9)}`,
  );
}

function measure({ endpoints, tokens, shared, profile }: Case): { p50: number; p99: number; mean: number } {
  const router = new Router({
    seed: 1,
    profiles: { [profile]: loadProfile(profile).spec },
    defaultProfile: profile,
    index: new ApproximateIndex(),
    blockTokens: BLOCK_TOKENS,
    staleAfterMicros: 5_000_000,
  });
  for (let i = 0; i < endpoints; i++) {
    const id = `http://10.0.${i >> 8}.${i & 255}:8000`;
    const endpoint = { id, models: ["m"], labels: {}, kvCapacityTokens: 500_000, concurrencyMax: 256 };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
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
    const started = process.hrtime.bigint();
    router.accept({ kind: "request-arrived", at, request });
    const took = Number(process.hrtime.bigint() - started) / 1000;
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
  micros.sort();
  const at = (share: number) => micros[Math.floor(share * decisions)]!;
  return { p50: at(0.5), p99: at(0.99), mean: micros.reduce((sum, value) => sum + value, 0) / decisions };
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
