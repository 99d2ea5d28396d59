import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/profile/catalog.ts";
import { randomFor } from "#core/base/random.ts";
import { ABSTAIN } from "#core/scorer/scorer.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { request, snapshot } from "../state.ts";

/** Steps of 10 ms and 0.05 ms a prompt token: an idle endpoint answers 2,000 tokens after 110 ms. */
const TIMES = { stepMicros: 10_000, prefillTokenMicros: 50, sequenceMicros: 500, contextTokenMicros: 0 };
const idle = snapshot({ id: "a" });
const queued = snapshot({ id: "b", effectiveLoad: 2, requestsInFlight: 2, prefillTokensQueued: 8_000 });
const crowded = snapshot({ id: "c", effectiveLoad: 60, requestsInFlight: 60 });
const CANDIDATES = [idle, queued, crowded];

function scoresOf(slo: { readonly ttftMicros?: number; readonly tpotMicros?: number } | undefined): number[] {
  const scorer = CATALOG.scorers["slo-headroom"].create("x", TIMES);
  const scores = new Float64Array(CANDIDATES.length);
  scorer.score(request({ id: "q", promptTokens: 2_000, ...(slo && { slo }) }), CANDIDATES, scores);
  return [...scores];
}

test("what holds both targets has all of the score, what misses one less, the more the further", () => {
  const [a, b, c] = scoresOf({ ttftMicros: 300_000, tpotMicros: 20_000 });
  assert.equal(a, 1);
  assert.ok(b! < 1 && b! > 0.4, `${b}`);
  assert.ok(c! < 1 && c! > 0.4, `${c}`);
  const [, tighter] = scoresOf({ ttftMicros: 150_000 });
  assert.ok(tighter! < b!);
});

test("a target that is not stated always holds, and without any the scorer abstains", () => {
  assert.deepEqual(scoresOf({ ttftMicros: 300_000 }).slice(2), [1]);
  assert.deepEqual(scoresOf({ tpotMicros: 20_000 }).slice(0, 2), [1, 1]);
  assert.deepEqual(scoresOf(undefined), [ABSTAIN, ABSTAIN, ABSTAIN]);
});

test("the filter keeps who holds the targets; of nobody it keeps all, or refuses what may be shed", () => {
  const kept = (whenEmpty: string, ttftMicros: number, priority = 0) => {
    const filter = CATALOG.filters["slo-headroom"].create("x", { ...TIMES, whenEmpty });
    const keep = new Uint8Array(CANDIDATES.length).fill(1);
    const asked = request({ id: "q", promptTokens: 2_000, priority, slo: { ttftMicros } });
    filter.filter(asked, CANDIDATES, keep, randomFor(1, 1));
    return [...keep];
  };
  assert.deepEqual(kept("keep-all", 300_000), [1, 0, 1]);
  assert.deepEqual(kept("keep-all", 1_000), [1, 1, 1]);
  assert.deepEqual(kept("refuse", 1_000), [0, 0, 0]);
  assert.deepEqual(kept("refuse-sheddable", 1_000), [1, 1, 1]);
  assert.deepEqual(kept("refuse-sheddable", 1_000, 1), [0, 0, 0]);
});

test("a router refuses as saturated what is sheddable and cannot be answered in time, and nothing else", () => {
  const filter = { plugin: "slo-headroom", parameters: { ...TIMES, whenEmpty: "refuse-sheddable" } };
  const profile = { filters: [filter], scorers: [], picker: { plugin: "round-robin", parameters: {} } };
  const router = new Router({
    profiles: { p: profile },
    defaultProfile: "p",
    seed: 1,
    blockTokens: 16,
    staleAfterMicros: 5_000_000,
    index: new ApproximateIndex(),
  });
  router.accept({ kind: "endpoint-joined", at: 0, endpoint: idle.endpoint });
  const asked = (id: string, priority: number) =>
    router.accept({
      kind: "request-arrived",
      at: 1_000,
      request: request({ id, promptTokens: 20_000, priority, slo: { ttftMicros: 2_000_000 } }),
    });
  assert.equal(asked("first", 1)?.kind, "routed");
  assert.equal(asked("urgent", 0)?.kind, "routed");
  const shed = asked("shed", 1);
  assert.ok(shed?.kind === "rejected" && shed.reason === "saturated");
});
