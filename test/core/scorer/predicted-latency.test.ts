import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/catalog.ts";
import { MICROS_PER_MILLI } from "#core/units.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import { Router } from "#core/router.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { request, snapshot } from "../state.ts";

const PROFILE = {
  filters: [],
  scorers: [{ plugin: "predicted-latency", weight: 1, parameters: {} }],
  picker: { plugin: "max-score", parameters: {} },
};

/** Endpoints that take so many times as long as the first, one request after the other, each of 20 tokens. */
function routed(
  slowness: Readonly<Record<string, number>>,
  requests: number,
  stepTimes: Readonly<Record<string, StepTimes>> = {},
) {
  const router = new Router({
    profiles: { p: PROFILE },
    defaultProfile: "p",
    seed: 1,
    blockTokens: 16,
    staleAfterMicros: 5_000_000,
    index: new ApproximateIndex(),
  });
  for (const id of Object.keys(slowness)) {
    const endpoint = { ...snapshot({ id }).endpoint, ...(stepTimes[id] && { stepTimes: stepTimes[id] }) };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
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

/** An engine on which 2,000 tokens take 100 ms and a step 10 ms, or a multiple of that. */
function stepTimesOf(times: number): StepTimes {
  return {
    stepMicros: 10_000 * times,
    prefillTokenMicros: 45 * times,
    sequenceMicros: 0,
    contextTokenMicros: 0,
    stepTokensMax: 8_192,
  };
}

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
