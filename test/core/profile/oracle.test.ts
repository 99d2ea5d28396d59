import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import type { Profile } from "#core/profile/profile.ts";
import { type Random, randomFor } from "#core/base/random.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { chain, request, snapshot } from "../state.ts";
import {
  type Instance,
  type Unified,
  pick_lmetric,
  pick_load_only,
  pick_sticky,
  pick_unified,
  prefix_cache_routing,
} from "./b3-oracle.ts";
import { drawnSeed } from "../../drawn-seeds.ts";

/** States per policy. 100,000 take about two seconds each. */
const STATES = Number(process.env["TEST_ORACLE_STATES"] ?? 10_000);
const SEED = drawnSeed(20_261);
const BLOCK_TOKENS = 16;
const BLOCKS = 24;
const BLOCK_CHAIN = chain(3, BLOCKS);

/** A profile, driven without a router: every decision is observed, as the router does it. */
class Driven {
  readonly #profile: Profile;
  #sequence = 0;

  constructor(name: string) {
    this.#profile = buildProfile(name, loadProfile(name).spec);
  }

  choose(asked: RouteRequest, snapshots: readonly Snapshot[]): number {
    const ids = snapshots.map(({ id }) => id);
    const sequence = this.#sequence++;
    const none = new Uint8Array(ids.length);
    const choice = this.#profile.choose(asked, snapshots, ids, none, randomFor(1, sequence));
    const at = snapshots[0]!.at;
    const noted = this.#profile.noted(snapshots[choice.index]!);
    const decision: Decision = {
      kind: "routed",
      at,
      sequence,
      requestId: asked.id,
      attempt: 1,
      profile: this.#profile.name,
      policyVersion: 1,
      breakdown: choice.breakdown,
      endpoint: ids[choice.index]!,
      reason: choice.reason,
      hitTokens: snapshots[choice.index]!.hitTokens,
      prefixSource: "approximate",
      usedLedger: true,
      ...(noted && { noted }),
    };
    this.#profile.observe({ kind: "request-arrived", at, request: asked }, decision, asked);
    return choice.index;
  }
}

interface State {
  readonly asked: RouteRequest;
  readonly snapshots: readonly Snapshot[];
}

/** Small numbers, so that ties on every key, empty fleets and full hits are common; now and then large ones. */
function drawState(random: Random, count: number, at: number): State {
  const wide = random.below(4) === 0;
  const promptTokens = BLOCKS * BLOCK_TOKENS + random.below(2) * random.below(16);
  const asked = request({ id: `r${at}`, session: `s${random.below(40)}`, blocks: BLOCK_CHAIN, promptTokens });
  const idle = random.below(10) === 0;
  const snapshots = Array.from({ length: count }, (_, i) => {
    const hitBlocks = random.below(3) === 0 ? random.below(BLOCKS + 1) : random.below(2) * BLOCKS;
    const requestsInFlight = idle ? 0 : random.below(wide ? 200 : 5);
    return snapshot({
      id: `e${String(i).padStart(3, "0")}`,
      at,
      requestsInFlight,
      effectiveLoad: requestsInFlight,
      prefillTokensQueued: requestsInFlight === 0 ? 0 : random.below(wide ? 1_000_000 : 3) * (wide ? 1 : 400),
      hitBlocks,
      hitTokens: hitBlocks * BLOCK_TOKENS,
    });
  });
  return { asked, snapshots };
}

const instance = (one: Snapshot): Instance => ({
  num_requests: one.requestsInFlight,
  pending_prefill_tokens: one.prefillTokensQueued,
  cache_hit: one.hitTokens,
});

/** Same picks over all states; fleets keep their size for a while, so that sessions and rotation have a past. */
function samePicks(profile: string, oracle: () => (state: State) => number): void {
  const random = randomFor(SEED, STATES);
  let driven = new Driven(profile);
  let pick = oracle();
  let count = 1;
  for (let i = 0; i < STATES; i++) {
    if (i % 500 === 0) {
      count = 1 + random.below(12);
      driven = new Driven(profile);
      pick = oracle();
    }
    const state = drawState(random, count, i);
    const expected = pick(state);
    const got = driven.choose(state.asked, state.snapshots);
    if (got !== expected) assert.fail(`${profile}, seed ${SEED}, state ${i}: ${got}, not ${expected}\n${shown(state)}`);
  }
}

function shown({ asked, snapshots }: State): string {
  return snapshots
    .map((one) => `${one.id} ${JSON.stringify({ ...instance(one), input_length: asked.promptTokens })}`)
    .join("\n");
}

test("b3-lmetric picks as pick_lmetric", () =>
  samePicks(
    "b3-lmetric",
    () =>
      ({ asked, snapshots }) =>
        pick_lmetric(snapshots.map(instance), asked.promptTokens),
  ));

test("load-only picks as pick_load_only", () =>
  samePicks(
    "load-only",
    () =>
      ({ snapshots }) =>
        pick_load_only(snapshots.map(instance)),
  ));

test("sticky picks as pick_sticky", () =>
  samePicks("sticky", () => {
    const affinity = new Map<string, number>();
    return ({ asked, snapshots }) => pick_sticky(snapshots.map(instance), asked.session, affinity);
  }));

test("unified picks as pick_unified, gate, four keys and rotation", () =>
  samePicks("unified", () => {
    const state: Unified = { affinity: new Map(), rr_counter: 0 };
    return ({ asked, snapshots }) => pick_unified(snapshots.map(instance), asked.promptTokens, asked.session, state);
  }));

test("aibrix-prefix-cache picks as prefix_cache_routing, gate and guard", () =>
  samePicks(
    "aibrix-prefix-cache",
    () =>
      ({ asked, snapshots }) =>
        prefix_cache_routing(
          snapshots.map((one) => ({ running_request: one.requestsInFlight, matched: one.hitBlocks })),
          asked.blocks.length,
        ),
  ));
