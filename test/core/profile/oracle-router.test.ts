import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { type Random, randomFor } from "#core/base/random.ts";
import { Router } from "#core/router.ts";
import { chain, request } from "../state.ts";
import { type Instance, type Unified, pick_lmetric, pick_load_only, pick_sticky, pick_unified } from "./b3-oracle.ts";
import { drawnSeed } from "../../drawn-seeds.ts";

const SEED = drawnSeed(77);
/** Decisions and ends of a policy's traffic. */
const STEPS = Number(process.env["TEST_ORACLE_STATES"] ?? 6_000);
const BLOCK_TOKENS = 16;

/** The per-instance state that the B3 policies share, kept on its own. */
class Worker {
  num_requests = 0;
  pending_prefill_tokens = 0;
  /** Prompt families by the most leading blocks of them that are cached. Nothing is evicted here: there is room. */
  readonly cached = new Map<number, number>();

  /** The longest cached prefix; an engine computes the last block of a prompt that it holds whole. */
  estimate_cache_hit(family: number, blocks: number, tokens: number): number {
    const held = Math.min(this.cached.get(family) ?? 0, blocks);
    return BLOCK_TOKENS * (held * BLOCK_TOKENS >= tokens ? Math.max(0, held - 1) : held);
  }
}

interface Flight {
  readonly id: string;
  readonly worker: Worker;
  pending: number;
}

type Pick = (instances: readonly Instance[], inputLength: number, session: string) => number;

/**
 * Traffic through a real router, with its index, ledger and affinity tables, against the document's functions over
 * workers that are kept beside it.
 */
function compare(profile: string, pick: Pick): void {
  const random = randomFor(SEED, profile.length);
  const workers = Array.from({ length: 6 }, () => new Worker());
  const router = newRouter(profile, workers.length);
  const flights: Flight[] = [];
  for (let at = 1; at <= STEPS; at++) {
    const flight = flights[random.below(Math.max(1, flights.length))];
    const roll = random.below(10);
    if (roll < 4 || flight === undefined) flights.push(arrive(router, workers, random, at, pick, profile));
    else if (roll < 7) firstToken(router, flight, at);
    else {
      firstToken(router, flight, at);
      flights.splice(flights.indexOf(flight), 1);
      flight.worker.num_requests--;
      router.accept({
        kind: "request-finished",
        at,
        requestId: flight.id,
        outcome: "ok",
        promptTokens: undefined,
        cachedTokens: undefined,
        outputTokens: 3,
      });
    }
  }
}

function arrive(router: Router, workers: Worker[], random: Random, at: number, pick: Pick, profile: string): Flight {
  const family = random.below(30);
  const length = 1 + random.below(20);
  const promptTokens = length * BLOCK_TOKENS + random.below(BLOCK_TOKENS);
  const session = `s${family}`;
  const asked = request({ id: `r${at}`, session, promptTokens, blocks: chain(family, length) });
  const hits = workers.map((worker) => worker.estimate_cache_hit(family, length, promptTokens));
  const expected = pick(
    workers.map(({ num_requests, pending_prefill_tokens }, i) => ({
      num_requests,
      pending_prefill_tokens,
      cache_hit: hits[i]!,
    })),
    promptTokens,
    session,
  );
  const decision = router.accept({ kind: "request-arrived", at, request: asked });
  const got = decision.kind === "routed" ? decision.endpoint : decision.reason;
  assert.equal(got, `e${expected}`, `${profile}, seed ${SEED}, step ${at}`);
  const worker = workers[expected]!;
  const pending = Math.max(1, promptTokens - hits[expected]!);
  worker.num_requests++;
  worker.pending_prefill_tokens += pending;
  worker.cached.set(family, Math.max(worker.cached.get(family) ?? 0, length));
  return { id: asked.id, worker, pending };
}

function firstToken(router: Router, flight: Flight, at: number): void {
  router.accept({ kind: "first-token", at, requestId: flight.id });
  flight.worker.pending_prefill_tokens -= flight.pending;
  flight.pending = 0;
}

function newRouter(profile: string, endpoints: number): Router {
  const router = new Router({
    seed: 1,
    profiles: { [profile]: loadProfile(profile).spec },
    defaultProfile: profile,
    index: new ApproximateIndex(),
    blockTokens: BLOCK_TOKENS,
    staleAfterMicros: 1_000_000,
  });
  for (let i = 0; i < endpoints; i++) {
    const endpoint = { id: `e${i}`, models: [], labels: {}, kvCapacityTokens: 1_000_000, concurrencyMax: undefined };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return router;
}

test("a router with b3-lmetric places traffic as pick_lmetric", () => compare("b3-lmetric", pick_lmetric));

test("a router with load-only places traffic as pick_load_only", () => compare("load-only", pick_load_only));

test("a router with sticky places traffic as pick_sticky", () => {
  const affinity = new Map<string, number>();
  compare("sticky", (instances, _length, session) => pick_sticky(instances, session, affinity));
});

test("a router with unified places traffic as pick_unified", () => {
  const state: Unified = { affinity: new Map(), rr_counter: 0 };
  compare("unified", (instances, length, session) => pick_unified(instances, length, session, state));
});
