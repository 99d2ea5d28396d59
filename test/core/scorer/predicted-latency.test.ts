import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/catalog.ts";
import { MICROS_PER_MILLI } from "#core/units.ts";
import { Router } from "#core/router.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { request, snapshot } from "../state.ts";

const PROFILE = {
  filters: [],
  scorers: [{ plugin: "predicted-latency", weight: 1, parameters: {} }],
  picker: { plugin: "max-score", parameters: {} },
};

/** Endpoints that take so many times as long as the first, one request after the other, each of 20 tokens. */
function routed(slowness: Readonly<Record<string, number>>, requests: number) {
  const router = new Router({
    profiles: { p: PROFILE },
    defaultProfile: "p",
    seed: 1,
    blockTokens: 16,
    staleAfterMicros: 5_000_000,
    index: new ApproximateIndex(),
  });
  for (const id of Object.keys(slowness)) {
    router.accept({ kind: "endpoint-joined", at: 0, endpoint: snapshot({ id }).endpoint });
  }
  const decisions = [];
  for (let i = 0, at = 1_000; i < requests; i++, at += 1_000 * MICROS_PER_MILLI) {
    const id = `r${i}`;
    const decision = router.accept({ kind: "request-arrived", at, request: request({ id, promptTokens: 2_000 }) });
    assert.ok(decision?.kind === "routed");
    decisions.push(decision);
    const times = slowness[decision.endpoint]!;
    const firstAt = at + 100 * times * MICROS_PER_MILLI;
    router.accept({ kind: "first-token", at: firstAt, requestId: id });
    const usage = { promptTokens: 2_000, cachedTokens: 0, outputTokens: 20 };
    const endAt = firstAt + 19 * 10 * times * MICROS_PER_MILLI;
    router.accept({ kind: "request-finished", at: endAt, requestId: id, outcome: "ok", ...usage });
  }
  return decisions;
}

test("a slower endpoint is found out by what it took, and left alone while the faster one is idle", () => {
  const decisions = routed({ a: 3, b: 1 }, 40);
  assert.ok(decisions.some(({ endpoint }) => endpoint === "a"));
  assert.ok(decisions.slice(20).every(({ endpoint }) => endpoint === "b"));
});

test("a decision states the times that it expects, and they come true", () => {
  const { forecast } = routed({ a: 1 }, 60).at(-1)!;
  assert.ok(forecast !== undefined);
  assert.ok(Math.abs(forecast.ttftMicros / (100 * MICROS_PER_MILLI) - 1) < 0.1, `TTFT ${forecast.ttftMicros}`);
  assert.ok(Math.abs(forecast.tpotMicros / (10 * MICROS_PER_MILLI) - 1) < 0.1, `TPOT ${forecast.tpotMicros}`);
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
