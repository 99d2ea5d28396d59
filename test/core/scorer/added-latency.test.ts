import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/profile/catalog.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { request, snapshot } from "../state.ts";

const WEIGHTS = {
  queueWeight: 3,
  cacheWeight: 2,
  batchWeight: 5,
  fullWeight: 7,
  sequenceTokens: 0.5,
  contextShare: 0.01,
};

function scorer(parameters: Readonly<Record<string, number>> = { ...WEIGHTS, outputTokensGuess: 100 }) {
  return CATALOG.scorers["added-latency"].create("a", parameters);
}

function scores(made: ReturnType<typeof scorer>, promptTokens: number, candidates: readonly Snapshot[]): number[] {
  const values = new Float64Array(candidates.length);
  made.score(request({ id: "q", promptTokens }), candidates, values);
  return [...values];
}

const idle = snapshot({ id: "idle" });
const busy = snapshot({
  id: "busy",
  requestsInFlight: 2,
  effectiveLoad: 3,
  prefillTokensQueued: 500,
  promptTokensInFlight: 4000,
  hitTokens: 640,
});

function near(got: readonly number[], expected: readonly number[]): void {
  expected.forEach((one, i) => assert.ok(Math.abs(got[i]! - one) < 1e-12, `${got[i]}, not ${one}`));
}

test("the cost is that of the formula, worked out by hand", () => {
  const idleCost = 1000 * (1 + 0 + 2);
  const context = 4000 + 1 * 1000 + (3 * 100) / 2;
  const busyCost = 3 * 500 + 360 * (1 + 3 + 2) + 5 * 100 * (2 * 3 * 0.5 + 0.01 * (context + 3 * 1000));
  near(scores(scorer(), 1000, [idle, busy]), [1, (idleCost + 1) / (busyCost + 1)]);
});

test("what the KV cache has no room for is paid for, and only where its size is known", () => {
  const endpoint = { ...busy.endpoint, kvCapacityTokens: 6000 };
  const [full, roomy] = [snapshot({ ...busy, endpoint }), busy];
  const [fullScore, roomyScore] = scores(scorer(), 1000, [full, roomy]);
  assert.equal(roomyScore, 1);
  const cost = 3 * 500 + 360 * 6 + 500 * (3 + 0.01 * (5150 + 3000));
  near([fullScore!], [(cost + 1) / (cost + 7 * (5150 + 1000 - 6000) + 1)]);
});

test("a long prompt avoids context that a short one goes to for its prefix", () => {
  const warm = snapshot({
    ...busy,
    id: "warm",
    prefillTokensQueued: 0,
    promptTokensInFlight: 100_000,
    hitTokens: 1500,
  });
  const cold = snapshot({ ...busy, id: "cold", prefillTokensQueued: 0, promptTokensInFlight: 4000, hitTokens: 0 });
  const made = scorer({});
  const [, coldForShort] = scores(made, 1600, [warm, cold]);
  assert.equal(coldForShort, 1, "context outweighs a short prefix while answers are long");
  for (let i = 0; i < 200; i++) {
    const end = { promptTokens: 10, cachedTokens: 0, outputTokens: 4, outcome: "ok" as const };
    made.observe?.({ kind: "request-finished", at: i * 60_000_000, requestId: `r${i}`, ...end }, undefined, undefined);
  }
  const [warmNow] = scores(made, 1600, [warm, cold]);
  assert.equal(warmNow, 1, "and no more once they are seen to be short");
});

test("embeddings, which have no answer, leave the length of answers as it was seen", () => {
  const busy = { freshness: "fresh", effectiveLoad: 6, requestsInFlight: 6 } as const;
  const warm = snapshot({ ...busy, id: "warm", promptTokensInFlight: 6000, hitTokens: 900 });
  const idle = snapshot({ id: "idle" });
  const made = scorer({});
  const before = scores(made, 1000, [warm, idle]);
  for (let i = 0; i < 200; i++) {
    const end = { promptTokens: 10, cachedTokens: 0, outputTokens: 0, outcome: "ok" as const };
    made.observe?.({ kind: "request-finished", at: i * 60_000_000, requestId: `r${i}`, ...end }, undefined, undefined);
  }
  assert.deepEqual(scores(made, 1000, [warm, idle]), before);
});
