import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import { CATALOG } from "#core/profile/catalog.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { loadProfile } from "#config/profile-file.ts";
import { request, snapshot } from "../state.ts";
import { routedBy, stepTimesOf } from "./slow-endpoints.ts";

const WEIGHTS = {
  queueWeight: 3,
  cacheWeight: 2,
  windowSeconds: 10,
  batchWeight: 5,
  fullWeight: 7,
  roomShare: 0.5,
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

/** Tells the scorer of a prompt that was sent. */
function sent(made: ReturnType<typeof scorer>, at: number, endpoint: string, promptTokens: number): void {
  const asked = request({ id: `s${at}`, promptTokens });
  const decision: Decision = {
    kind: "routed",
    at,
    sequence: 0,
    requestId: asked.id,
    attempt: 1,
    profile: "p",
    policyVersion: 1,
    endpoint,
    reason: "only",
    hitTokens: 0,
    prefixSource: "approximate",
    usedLedger: true,
    breakdown: { candidates: [], scorers: [], values: new Float64Array(0), totals: new Float64Array(0), clamped: 0 },
  };
  made.observe?.({ kind: "request-arrived", at, request: asked }, decision, asked);
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
  near([fullScore!], [(cost + 1) / (cost + 7 * (5150 + 360 - 3000) + 1)]);
});

test("what is in the cache already needs no more room", () => {
  const endpoint = { ...idle.endpoint, kvCapacityTokens: 2000 };
  const [holder, stranger] = [snapshot({ ...idle, endpoint, hitTokens: 999 }), snapshot({ ...idle, endpoint })];
  const made = scorer({ ...WEIGHTS, cacheWeight: 0 });
  near(scores(made, 1500, [holder, stranger]), [1, (501 + 1) / (1500 + 7 * 500 + 1)]);
});

test("a new token costs more where more was sent within the window, in proportion to the mean", () => {
  const made = scorer();
  const [a, b] = ["a", "b"].map((id) => snapshot({ id, at: 9_000_000 }));
  sent(made, 1_000_000, "a", 300);
  sent(made, 8_000_000, "b", 100);
  near(scores(made, 1000, [a!, b!]), [(1000 * (1 + 2 * 0.5) + 1) / (1000 * (1 + 2 * 1.5) + 1), 1]);
  const later = [a!, b!].map((one) => snapshot({ ...one, at: 12_000_000 }));
  near(scores(made, 1000, later), [1, (1000 + 1) / (1000 * (1 + 2 * 2) + 1)]);
});

test("a short prompt asked again stays with its prefix, though nothing else was ever sent", () => {
  const { scorers } = loadProfile("gnomon-added").spec;
  const [holder, ...others] = ["a", "b", "c"].map((id) => snapshot({ id }));
  for (const promptTokens of [40, 309, 1500]) {
    const hitTokens = Math.floor((0.6 * promptTokens) / 16) * 16;
    const again = [snapshot({ ...holder!, hitTokens }), ...others];
    const made = scorer(scorers[0]!.parameters as Record<string, number>);
    sent(made, 0, "a", promptTokens);
    const [stays, ...elsewhere] = scores(made, promptTokens, again);
    assert.equal(stays, 1, `${promptTokens} tokens`);
    for (const score of elsewhere) assert.ok(score < 1);
    const without = scorer({});
    sent(without, 0, "a", promptTokens);
    assert.ok(scores(without, promptTokens, again)[0]! < 1, "one prompt counted as all the demand there is");
  }
});

test("an endpoint that left begins anew when it comes back", () => {
  const made = scorer();
  const both = ["a", "b"].map((id) => snapshot({ id, at: 2_000_000 }));
  sent(made, 1_000_000, "a", 300);
  assert.ok(scores(made, 1000, both)[0]! < 1);
  made.observe?.({ kind: "endpoint-left", at: 1_500_000, endpoint: "a" }, undefined, undefined);
  assert.deepEqual(scores(made, 1000, both), [1, 1]);
});

test("a conversation stays where its prompt is while a new one goes where less was sent", () => {
  const made = scorer({});
  const [home, other] = [snapshot({ id: "a", effectiveLoad: 3, requestsInFlight: 3 }), snapshot({ id: "b" })];
  const load = { effectiveLoad: 2, requestsInFlight: 2 };
  for (let i = 0; i < 10; i++) sent(made, 0, i < 7 ? "a" : "b", 4000);
  const [stays] = scores(made, 4000, [snapshot({ ...home, hitTokens: 3900 }), snapshot({ ...other, ...load })]);
  assert.equal(stays, 1);
  const [, begins] = scores(made, 4000, [snapshot({ ...home, ...load }), snapshot({ ...other, ...load })]);
  assert.equal(begins, 1);
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
  const made = scorer({ batchWeight: 1, cacheWeight: 1 });
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

test("several answers that came side by side are each as long as one", () => {
  const busy = snapshot({
    id: "busy",
    effectiveLoad: 6,
    requestsInFlight: 6,
    promptTokensInFlight: 6000,
    hitTokens: 900,
  });
  const [one, four] = [1, 4].map((sequences) => {
    const made = scorer({});
    const end = { promptTokens: 10, cachedTokens: 0, outputTokens: 40 * sequences, outcome: "ok" as const };
    const asked = request({ id: "r", sequences });
    made.observe?.({ kind: "request-finished", at: 0, requestId: "r", ...end }, undefined, asked);
    return scores(made, 1000, [busy, snapshot({ id: "idle" })]);
  });
  assert.deepEqual(four, one);
});

const ownSpeeds = { plugin: "added-latency", parameters: { speedWeight: 1 } };

function shareOf(decisions: readonly { readonly endpoint: string }[], id: string): number {
  return decisions.filter(({ endpoint }) => endpoint === id).length / decisions.length;
}

test("a slower endpoint gets fewer new prompts once its answers have shown what it takes", () => {
  const [alike, learned] = [{ ...ownSpeeds, parameters: {} }, ownSpeeds].map((one) =>
    routedBy(one, { a: 3, b: 1 }, 80).slice(20),
  );
  assert.ok(Math.abs(shareOf(alike!, "a") - 0.5) < 0.1, `${shareOf(alike!, "a")} where all count as alike`);
  assert.ok(shareOf(learned!, "a") < 0.35, `${shareOf(learned!, "a")} where its own speed counts`);
});

test("known step times distinguish endpoints from the first request on", () => {
  const decisions = routedBy(ownSpeeds, { a: 3, b: 1 }, 20, { a: stepTimesOf(3), b: stepTimesOf(1) });
  assert.equal(decisions[0]!.endpoint, "b");
  assert.ok(shareOf(decisions, "a") < 0.35, `${shareOf(decisions, "a")}`);
});

test("endpoints of one speed differ by what they have, whatever that speed is", () => {
  const cost = (times: number): number[] => {
    const known = stepTimesOf(times);
    const made = CATALOG.scorers["added-latency"].create("a", { ...WEIGHTS, outputTokensGuess: 100, speedWeight: 1 });
    return scores(
      made,
      1000,
      [idle, busy].map((one) => snapshot({ ...one, endpoint: { ...one.endpoint, stepTimes: known } })),
    );
  };
  near(cost(1), scores(scorer(), 1000, [idle, busy]));
  near(cost(7), cost(1));
});

test("half the weight counts half of the difference in speed", () => {
  const at = (speedWeight: number): number => {
    const made = CATALOG.scorers["added-latency"].create("a", { ...WEIGHTS, batchWeight: 0, speedWeight });
    const [slow, fast] = [3, 1].map((times) =>
      snapshot({
        ...idle,
        id: `${times}`,
        endpoint: { ...idle.endpoint, id: `${times}`, stepTimes: stepTimesOf(times) },
      }),
    );
    return scores(made, 1000, [slow!, fast!])[0]!;
  };
  const cost = 1000 * (1 + 2);
  near([at(0), at(0.5), at(1)], [1, (0.75 * cost + 1) / (1.25 * cost + 1), (0.5 * cost + 1) / (1.5 * cost + 1)]);
});
