import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/profile/catalog.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { request, snapshot } from "../state.ts";
import { type Known, routedBy, stepTimesOf } from "./slow-endpoints.ts";

const routed = (slowness: Readonly<Record<string, number>>, requests: number, known: Known = {}) =>
  routedBy({ plugin: "predicted-latency", parameters: {} }, slowness, requests, known);

test("a slower endpoint is found out by what it took, and gets little beside what the faster one is asked for", () => {
  const decisions = routed({ a: 3, b: 1 }, 60);
  assert.ok(decisions.some(({ endpoint }) => endpoint === "a"));
  const later = decisions.slice(20).filter(({ endpoint }) => endpoint === "a");
  assert.ok(later.length <= 40 / 5, `${later.length} of 40`);
  const { ttftMicros } = later.at(-1)!.forecast!;
  assert.ok(Math.abs(ttftMicros / (300 * MICROS_PER_MILLI) - 1) < 0.15, `TTFT ${ttftMicros}`);
});

test("a decision states the times that it expects, and they come true", () => {
  const { forecast } = routed({ a: 1 }, 60).at(-1)!;
  assert.ok(forecast !== undefined);
  assert.ok(Math.abs(forecast.ttftMicros / (100 * MICROS_PER_MILLI) - 1) < 0.1, `TTFT ${forecast.ttftMicros}`);
  assert.ok(Math.abs(forecast.tpotMicros / (10 * MICROS_PER_MILLI) - 1) < 0.1, `TPOT ${forecast.tpotMicros}`);
});

test("the pace and the length of answers side by side are those of one", () => {
  const decisions = routedBy({ plugin: "predicted-latency", parameters: {} }, { a: 1 }, 60, {}, 4);
  const { tpotMicros } = decisions.at(-1)!.forecast!;
  assert.ok(Math.abs(tpotMicros / (10 * MICROS_PER_MILLI) - 1) < 0.1, `TPOT ${tpotMicros}`);
  const made = [1, 4].map((sequences) => {
    const scorer = CATALOG.scorers["predicted-latency"].create("x", {});
    const asked = request({ id: "q", sequences });
    const end = { outcome: "ok", promptTokens: 10, cachedTokens: 0, outputTokens: 40 * sequences } as const;
    scorer.observe!({ kind: "request-finished", at: 0, requestId: "q", ...end }, undefined, asked);
    const scores = new Float64Array(2);
    const busy = { effectiveLoad: 6, requestsInFlight: 6, hitTokens: 32 };
    scorer.score(request({ id: "r" }), [snapshot({ ...busy, id: "a" }), snapshot({ id: "b" })], scores);
    return [...scores];
  });
  assert.deepEqual(made[1], made[0]);
});

test("several answers to one prompt are as many in the batch, within what it has room for, and slow all others down", () => {
  const scorer = CATALOG.scorers["predicted-latency"].create("x", { sequenceMicros: 500, contextTokenMicros: 0 });
  const [one, four, many] = [1, 4, 40].map((sequences) => request({ id: "q", promptTokens: 1_000, sequences }));
  const idle = snapshot({ id: "a" });
  const of = (asked: typeof one, at: typeof idle) => scorer.forecast!(asked!, at);
  assert.equal(of(four, idle).tpotMicros - of(one, idle).tpotMicros, 3 * 500);
  assert.equal(of(four, idle).ttftMicros, of(one, idle).ttftMicros);
  const full = snapshot({ id: "b", effectiveLoad: 7, requestsInFlight: 7 });
  const small = { ...full, endpoint: { ...full.endpoint, concurrencyMax: 8 } };
  assert.equal(of(four, small).tpotMicros, of(one, small).tpotMicros);
  assert.equal(of(many, small).tpotMicros, of(one, small).tpotMicros);
  const preference = [one, four].map((asked) => {
    const scores = new Float64Array(2);
    scorer.score(asked!, [full, snapshot({ id: "a", prefillTokensQueued: 4_000 })], scores);
    return scores[0]! / scores[1]!;
  });
  assert.ok(preference[1]! < preference[0]!, String(preference));
});

test("a forecast is of the candidate as it is, and changes nothing", () => {
  const scorer = CATALOG.scorers["predicted-latency"].create("x", {});
  const asked = request({ id: "q", promptTokens: 4_000 });
  const idle = snapshot({ id: "a" });
  const cached = snapshot({ id: "a", hitTokens: 3_200 });
  const busy = snapshot({ id: "a", effectiveLoad: 20, requestsInFlight: 20, prefillTokensQueued: 9_000 });
  const [alone, hit, queued] = [idle, cached, busy].map((one) => scorer.forecast!(asked, one));
  assert.ok(hit!.ttftMicros < alone!.ttftMicros && alone!.ttftMicros < queued!.ttftMicros);
  assert.ok(alone!.tpotMicros < queued!.tpotMicros);
  assert.deepEqual(scorer.forecast!(asked, idle), alone);
});

test("known step times are right from the first request on, where unknown ones have to be learned", () => {
  const known = routed({ a: 3, b: 1 }, 40, { a: stepTimesOf(3), b: stepTimesOf(1) });
  assert.equal(known[0]!.endpoint, "b");
  assert.ok(known.filter(({ endpoint }) => endpoint === "b").length > 30);
  const first = known[0]!.forecast!;
  assert.ok(Math.abs(first.ttftMicros / (100 * MICROS_PER_MILLI) - 1) < 0.01, `TTFT ${first.ttftMicros}`);
  assert.ok(Math.abs(first.tpotMicros / (10 * MICROS_PER_MILLI) - 1) < 0.01, `TPOT ${first.tpotMicros}`);
  const learned = routed({ a: 3, b: 1 }, 40)[0]!.forecast!;
  assert.ok(Math.abs(learned.ttftMicros / (100 * MICROS_PER_MILLI) - 1) > 0.05);
});

test("known step times that are wrong are corrected by what answers took", () => {
  const { forecast } = routed({ a: 1 }, 60, { a: stepTimesOf(3) }).at(-1)!;
  assert.ok(Math.abs(forecast!.ttftMicros / (100 * MICROS_PER_MILLI) - 1) < 0.1, `TTFT ${forecast!.ttftMicros}`);
  assert.ok(Math.abs(forecast!.tpotMicros / (10 * MICROS_PER_MILLI) - 1) < 0.1, `TPOT ${forecast!.tpotMicros}`);
});

test("another description of an endpoint changes its forecast from the next decision on", () => {
  const scorer = CATALOG.scorers["predicted-latency"].create("x", {});
  const asked = request({ id: "q", promptTokens: 2_000 });
  const plain = snapshot({ id: "a" });
  const described = (times: number) => ({
    ...plain,
    id: "a",
    endpoint: { ...plain.endpoint, stepTimes: stepTimesOf(times) },
  });
  const [fast, slow] = [scorer.forecast!(asked, described(1)), scorer.forecast!(asked, described(3))];
  assert.ok(Math.abs(slow.ttftMicros / fast.ttftMicros - 3) < 0.01);
  assert.deepEqual(scorer.forecast!(asked, described(1)), fast);
});

test("waiting prompts, a prompt to compute, a large batch and a full cache each speak against an endpoint", () => {
  const asked = request({ id: "q", promptTokens: 4_000 });
  const small = { id: "b", models: ["m"], labels: {}, kvCapacityTokens: 100_000, concurrencyMax: undefined };
  const base = { id: "a", hitTokens: 3_200, requestsInFlight: 4, effectiveLoad: 4, promptTokensInFlight: 30_000 };
  const batch = { requestsInFlight: 60, effectiveLoad: 60, hitTokens: 4_000 };
  for (const [name, worse, parameters] of [
    ["waiting prompts", { prefillTokensQueued: 9_000 }, {}],
    ["a prompt to compute", { hitTokens: 0 }, {}],
    ["a large batch, nothing waiting or to compute", batch, { waitWeight: 0 }],
    ["a full cache", { endpoint: small }, { roomShare: 0.1 }],
  ] as const) {
    const scorer = CATALOG.scorers["predicted-latency"].create("x", parameters);
    const scores = new Float64Array(2);
    scorer.score(asked, [snapshot(base), snapshot({ ...base, id: "b", ...worse })], scores);
    assert.ok(scores[0] === 1 && scores[1]! > 0 && scores[1]! < 1, `${name}: ${scores.join(", ")}`);
  }
});

test("a forecast that is further off than a moving average does not decide, and the decision states that", () => {
  const asked = { filters: [], picker: { plugin: "max-score", parameters: {} } };
  const profile = { ...asked, scorers: [{ plugin: "predicted-latency", weight: 1, parameters: {} }] };
  const router = new Router({
    profiles: { p: profile },
    defaultProfile: "p",
    seed: 1,
    blockTokens: 16,
    staleAfterMicros: 5_000_000,
    index: new ApproximateIndex(),
  });
  for (const id of ["a", "b"]) router.accept({ kind: "endpoint-joined", at: 0, endpoint: snapshot({ id }).endpoint });
  // Long and short prompts that take the same time each, but for two in three: what no model of prompts can learn.
  const reasons: string[] = [];
  for (let i = 0, at = 1_000; i < 300; i++, at += 1_000 * MICROS_PER_MILLI) {
    const id = `r${i}`;
    const promptTokens = i % 2 === 0 ? 60_000 : 200;
    const decision = router.accept({ kind: "request-arrived", at, request: request({ id, promptTokens }) });
    assert.ok(decision?.kind === "routed");
    reasons.push(decision.reason);
    const firstAt = at + (i % 4 < 2 ? 400 : 420) * MICROS_PER_MILLI;
    router.accept({ kind: "first-token", at: firstAt, requestId: id });
    const usage = { promptTokens, cachedTokens: 0, outputTokens: 20 };
    router.accept({ kind: "request-finished", at: firstAt + 200_000, requestId: id, outcome: "ok", ...usage });
  }
  assert.ok(!reasons.slice(0, 30).includes("forecast-unsure"));
  assert.ok(reasons.slice(40).includes("forecast-unsure"), [...new Set(reasons)].join(", "));
});

test("who waits counts as one that a new prompt delays, not only who runs", () => {
  const scorer = CATALOG.scorers["predicted-latency"].create("x", { waitWeight: 0, turnWeight: 1, batchWeight: 0 });
  const full = (id: string) => ({ ...snapshot({ id }).endpoint, concurrencyMax: 4 });
  const load = (effectiveLoad: number) => ({ requestsInFlight: effectiveLoad, effectiveLoad });
  const scores = new Float64Array(2);
  const short = snapshot({ id: "a", endpoint: full("a"), ...load(8) });
  const long = snapshot({ id: "b", endpoint: full("b"), ...load(40) });
  scorer.score(request({ id: "q", promptTokens: 4_000 }), [short, long], scores);
  assert.ok(scores[0] === 1 && scores[1]! < 0.5, scores.join(", "));
});
