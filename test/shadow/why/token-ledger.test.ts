import "../../property-seed.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { engineDefaults } from "#engine/config.ts";
import { simulationOf } from "#shadow/candidate/candidate.ts";
import { TokenLedger, type TokenRow } from "#shadow/why/token-ledger.ts";
import { tokenSummary } from "#shadow/why/token-summary.ts";
import type { EngineEvent } from "#sim/fleet/engine-event.ts";
import { Simulation } from "#sim/simulation.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

interface Drawn {
  readonly seed: number;
  readonly kvBlocks: number;
  readonly profile: string;
  readonly rateScale: number;
  readonly faults: readonly EngineEvent["kind"][];
}

const DRAWN: fc.Arbitrary<Drawn> = fc.record({
  seed: fc.nat({ max: 1_000 }),
  kvBlocks: fc.constantFrom(60, 200, 600, 4_000),
  profile: fc.constantFrom("gnomon", "round-robin", "llm-d", "least-loaded"),
  rateScale: fc.constantFrom(1, 4),
  faults: fc.subarray(["engine-killed", "engine-refusing", "answers-cut"] as const),
});

const HEADER: TraceHeader = {
  version: 1,
  run: "run",
  segment: 0,
  startWallMicros: 0,
  router: {
    seed: 1,
    profiles: {},
    defaultProfile: "round-robin",
    blockTokens: 16,
    staleAfterMicros: 2_000_000,
    breaker: undefined,
  },
  hash: { algorithm: "fast", blockTokens: 16, tokenizer: "estimate" },
  endpoints: caseSetting(caseWorkload(150)).endpoints,
};

function ledgerOf({ seed, kvBlocks, profile, rateScale, faults }: Drawn, more: readonly EngineEvent[] = []) {
  const setting = {
    ...caseSetting(caseWorkload(150)),
    seed,
    rateScale,
    engine: engineDefaults({ kvBlocks }),
    fleetEvents: [
      ...more,
      ...faults.flatMap((kind, i): EngineEvent[] => {
        const at = 2_000_000 * (i + 1);
        const started: EngineEvent[] = [{ kind: "engine-started", at: at + 900_000, endpoint: "a" }];
        return [{ kind, at, endpoint: "a" }, ...(kind === "answers-cut" ? [] : started)];
      }),
    ],
  };
  const inputs: Input[] = [];
  const decisions: (Decision | undefined)[] = [];
  const ledger = new TokenLedger(() => kvBlocks - 1);
  const simulation = new Simulation({
    ...simulationOf(setting, namedProfile(profile), 0),
    observe: (input, decision) => {
      inputs.push(input);
      decisions.push(decision);
      ledger.take(input, decision);
    },
  });
  simulation.run();
  return { ledger, inputs, decisions };
}

/**
 * Leading blocks of each prompt that an earlier one had, by the plainest definition: not what only such brought as ended
 * before any engine had computed them.
 */
function sharedTokens(inputs: readonly Input[]): Map<string, number> {
  const seen = new Map<string, { readonly by: string; last: string }>();
  const uncomputed = new Map<string, readonly string[]>();
  const shared = new Map<string, number>();
  for (const input of inputs) {
    if (input.kind === "first-token") uncomputed.delete(input.requestId);
    if (input.kind === "request-finished" && (input.outcome === "failed" || input.outcome === "refused")) {
      const { requestId: id } = input;
      for (const key of uncomputed.get(id) ?? []) {
        const { by, last } = seen.get(key)!;
        if (by === id && last === id) seen.delete(key);
      }
    }
    if (input.kind !== "request-arrived") continue;
    const { id, blocks, promptTokens } = input.request;
    const keys = Array.from({ length: blocks.length }, (_, i) => `${blocks.hashes[2 * i]} ${blocks.hashes[2 * i + 1]}`);
    const missing = keys.findIndex((key) => !seen.has(key));
    const readable = Math.floor((promptTokens - 1) / blocks.blockTokens);
    shared.set(id, Math.min(readable, missing < 0 ? keys.length : missing) * blocks.blockTokens);
    uncomputed.set(id, keys);
    for (const key of keys) {
      const known = seen.get(key);
      if (known === undefined) seen.set(key, { by: id, last: id });
      else known.last = id;
    }
  }
  return shared;
}

test("possible = hit + losses for every request and together, and possible is what earlier prompts had, under any policy and fault", () => {
  fc.assert(
    fc.property(DRAWN, (drawn) => {
      const { ledger, inputs } = ledgerOf(drawn);
      const shared = sharedTokens(inputs);
      for (const { requestId, possible, hit, losses, promptTokens } of ledger.rows) {
        const lost = losses.reduce((sum, { tokens }) => sum + tokens, 0);
        assert.equal(hit + lost, possible, requestId);
        assert.ok(possible <= promptTokens && losses.every(({ tokens }) => tokens > 0));
        // An engine knows the answers of a conversation, too, which no prompt had before.
        assert.equal(possible, Math.max(hit, shared.get(requestId)!), requestId);
      }
      const sum = tokenSummary(ledger.rows);
      assert.equal(sum.hit + sum.losses.reduce((all, { tokens }) => all + tokens, 0), sum.possible);
      assert.equal(sum.newTokens + sum.possible, sum.promptTokens);
      const left = Object.values(ledger.left).reduce((all, count) => all + count, 0);
      const ended = inputs.filter(({ kind }) => kind === "request-finished").length;
      assert.equal(ledger.rows.length + left, ended);
    }),
    { numRuns: 25 },
  );
});

const CALM: Drawn = { seed: 3, kvBlocks: 4_000, profile: "gnomon", rateScale: 1, faults: [] };
const shareOf = (drawn: Drawn, loss: string, more: readonly EngineEvent[] = []) => {
  const { losses, possible } = tokenSummary(ledgerOf(drawn, more).ledger.rows);
  return (losses.find((one) => one.loss === loss)?.tokens ?? 0) / possible;
};

test("caches with room for everything evict nothing; small ones lose most to it", () => {
  assert.equal(shareOf(CALM, "evicted"), 0);
  const small = tokenSummary(ledgerOf({ ...CALM, kvBlocks: 60 }).ledger.rows);
  assert.equal(small.losses[0]!.loss, "evicted");
});

test("the caches are modelled as engines have them: what they report is within 2 % of it, at any size", () => {
  for (const kvBlocks of [200, 600, 4_000])
    assert.ok(shareOf({ ...CALM, kvBlocks }, "unexplained") < 0.02, `${kvBlocks}`);
});

test("round-robin loses most to policy, and the endpoint's turn is what weighed more", () => {
  const { losses } = tokenSummary(ledgerOf({ ...CALM, profile: "round-robin" }).ledger.rows);
  assert.equal(losses[0]!.loss, "policy");
});

test("engines that were killed lose what they had computed", () => {
  const killed = (endpoint: string, from: number, until: number): EngineEvent[] => [
    { kind: "engine-killed", at: from, endpoint },
    { kind: "engine-started", at: until, endpoint },
  ];
  const faults = [...killed("a", 4e6, 11e6), ...killed("b", 4.1e6, 11.2e6), ...killed("c", 11.5e6, 12e6)];
  const drawn = { ...CALM, profile: "prefix-affinity" };
  assert.ok(shareOf(drawn, "gone", faults) > 0.01);
  assert.equal(shareOf(drawn, "gone"), 0);
});

test("a prompt that an engine refused is no cached token lost, neither its own nor another's", () => {
  const { inputs, decisions } = ledgerOf({ ...CALM, profile: "round-robin" });
  const rowsOf = (turnsDown: (id: string) => boolean) => {
    const ledger = new TokenLedger(() => 3_999);
    ledger.takeItem({ kind: "run", header: HEADER });
    inputs.forEach((input, i) => {
      if (input.kind === "request-finished" && turnsDown(input.requestId)) {
        const counts = { promptTokens: undefined, cachedTokens: undefined, outputTokens: undefined };
        return ledger.take({ ...input, outcome: "refused", ...counts }, undefined);
      }
      const isOfOne = input.kind === "first-token" || input.kind === "progress";
      if (!isOfOne || !turnsDown(input.requestId)) ledger.take(input, decisions[i]);
    });
    return ledger;
  };
  const all = rowsOf(() => true);
  const ended = inputs.filter(({ kind }) => kind === "request-finished").length;
  assert.deepEqual([all.rows, all.left], [[], { "refused by an engine": ended }]);
  // Half of the requests, among them those whose prompts others repeat.
  const half = rowsOf((id) => Number(id.slice("request_".length)) % 2 === 0);
  const { losses } = tokenSummary(half.rows);
  assert.equal(half.rows.length, Math.floor(ended / 2));
  const refused = losses.find(({ loss }) => loss === "refused")?.tokens ?? 0;
  assert.ok(refused < 0.02 * tokenSummary(half.rows).possible, `${refused}`);
});

test("what an engine reports of several prompts is of the last one, and so no hit of the first", () => {
  const { inputs, decisions } = ledgerOf({ ...CALM, profile: "round-robin" });
  const rowsOf = (more: object) => {
    const ledger = new TokenLedger(() => 3_999);
    ledger.takeItem({ kind: "run", header: HEADER });
    inputs.forEach((input, i) => {
      const isArrival = input.kind === "request-arrived";
      ledger.take(isArrival ? { ...input, request: { ...input.request, ...more } } : input, decisions[i]);
    });
    return ledger.rows;
  };
  assert.ok(rowsOf({}).every(({ isModelled }) => !isModelled));
  assert.ok(rowsOf({ tokensByPrompt: [100, 100] }).every(({ isModelled }) => isModelled));
});

test("another router's decisions: tokens are sent elsewhere, whatever weighed more; without a place, a request has no row", () => {
  const { inputs, decisions } = ledgerOf({
    seed: 3,
    kvBlocks: 4_000,
    profile: "round-robin",
    rateScale: 1,
    faults: [],
  });
  const rowsOf = (router: string | undefined, unknown?: string) => {
    const ledger = new TokenLedger(() => 3_999);
    ledger.takeItem({ kind: "run", header: { ...HEADER, ...(router !== undefined && { observed: { router } }) } });
    inputs.forEach((input, i) => {
      const isUnknown = input.kind === "request-arrived" && input.request.id === unknown;
      ledger.take(isUnknown ? { ...input, observed: { endpoint: "", by: "none", sure: 0 } } : input, decisions[i]);
    });
    return ledger;
  };
  const own = tokenSummary(rowsOf(undefined).rows);
  const others = tokenSummary(rowsOf("nginx").rows);
  const of = ({ losses }: typeof own, loss: string) => losses.find((one) => one.loss === loss);
  assert.equal(others.possible, own.possible);
  assert.equal(others.hit, own.hit);
  assert.ok(of(own, "policy")!.tokens + (of(own, "index")?.tokens ?? 0) === of(others, "policy")!.tokens);
  assert.deepEqual([of(others, "policy")!.by.map(({ name }) => name), of(others, "index")], [[""], undefined]);
  const [{ requestId }] = rowsOf("nginx").rows as [TokenRow];
  const without = rowsOf("nginx", requestId);
  assert.ok(without.rows.every((row) => row.requestId !== requestId));
  assert.deepEqual(without.left, { "nobody knows where another router sent it": 1 });
});
