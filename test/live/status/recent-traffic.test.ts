import assert from "node:assert/strict";
import { test } from "node:test";
import type { FaultKind } from "#live/log/fault-log.ts";
import type { RequestSummary } from "#live/log/request-summary.ts";
import { RecentTraffic } from "#live/status/recent-traffic.ts";

const START = 1_000_000_000_000;

function summary(changes: Partial<RequestSummary> = {}): RequestSummary {
  return {
    requestId: "r",
    method: "POST",
    route: "/v1/chat/completions",
    model: "m",
    tenant: "t",
    endpoint: "e",
    profile: "gnomon",
    reason: "only",
    status: 200,
    outcome: "ok",
    stream: true,
    attempts: 1,
    ttftMicros: 100_000,
    tpotMicros: 20_000,
    queuedMicros: 0,
    e2eMicros: 1_000_000,
    promptTokens: 100,
    cachedTokens: 60,
    outputTokens: 10,
    hitTokens: 64,
    ...changes,
  };
}

test("requests are counted in the slot in which they end, by what came of them", () => {
  let now = START;
  const traffic = new RecentTraffic(() => now);
  traffic.finished(summary());
  traffic.finished(
    summary({ outcome: "failed", ttftMicros: undefined, tpotMicros: undefined, cachedTokens: undefined }),
  );
  now += 5_000;
  traffic.finished(summary({ outcome: "refused", ttftMicros: undefined, tpotMicros: undefined, cachedTokens: 0 }));
  traffic.finished(summary({ outcome: "timeout", ttftMicros: 300_000 }));
  traffic.finished(summary({ outcome: "aborted", ttftMicros: 500_000, cachedTokens: 30 }));
  const { slots, lastMinute, slotMillis } = traffic.view(-1);
  assert.deepEqual(
    slots.map(({ slot }) => slot),
    [START / slotMillis, START / slotMillis + 1],
  );
  assert.deepEqual(
    slots.map(({ requests, failed, refused, aborted, hitRatio }) => [requests, failed, refused, aborted, hitRatio]),
    [
      [2, 1, 0, 0, 0.6],
      [3, 1, 1, 1, 0.3],
    ],
  );
  assert.deepEqual(slots[0]?.ttft, {
    mean: 100,
    p50: lastMinute.tpot === null ? 0 : slots[0]!.ttft!.p50,
    p99: slots[0]!.ttft!.p99,
  });
  assert.equal(lastMinute.requests, 5);
  assert.equal(lastMinute.ttft?.mean, 300);
  assert.ok(Math.abs(lastMinute.ttft.p50 - 300) < 300 / 128);
  assert.equal(lastMinute.seconds, 5);
  assert.equal(lastMinute.e2e?.mean, 1_000);
});

test("times without requests are slots without figures, and what is asked for is what comes after", () => {
  let now = START;
  const traffic = new RecentTraffic(() => now);
  traffic.finished(summary());
  now += 15_000;
  const { slots, slotMillis } = traffic.view(-1);
  assert.deepEqual(
    slots.map(({ requests }) => requests),
    [1, 0, 0, 0],
  );
  assert.deepEqual([slots[1]?.ttft, slots[1]?.hitRatio], [null, null]);
  assert.equal(traffic.view(START / slotMillis + 2).slots.length, 1);
});

test("it remembers no more than its slots, over a long silence too, and a clock that goes back does no harm", () => {
  let now = START;
  const traffic = new RecentTraffic(() => now);
  for (let i = 0; i < 400; i++, now += 5_000) traffic.finished(summary());
  const { slots, slotsMax } = traffic.view(-1);
  assert.equal(slots.length, slotsMax);
  assert.deepEqual(
    slots.map(({ slot }) => slot - slots[0]!.slot),
    Array.from({ length: slotsMax }, (_, i) => i),
  );
  now += 86_400_000;
  const later = traffic.view(-1).slots;
  assert.equal(later.length, slotsMax);
  assert.ok(later.every(({ requests }) => requests === 0));
  now -= 3_600_000;
  traffic.finished(summary());
  assert.equal(traffic.view(-1).slots.at(-1)?.requests, 1);
});

test("of answers that are not streamed, it is not known when their first token came", () => {
  const traffic = new RecentTraffic(() => START);
  traffic.finished(summary());
  traffic.finished(summary({ stream: false, ttftMicros: 25_000_000, tpotMicros: undefined, e2eMicros: 25_000_000 }));
  const { lastMinute, models, slots } = traffic.view(-1);
  for (const { ttft } of [lastMinute, models[0]!, slots[0]!]) assert.equal(ttft?.mean, 100);
  assert.equal(lastMinute.e2e?.mean, 13_000);
});

test("the last minute by model: the busiest first, and beyond so many in a slot they are one", () => {
  let now = START;
  const traffic = new RecentTraffic(() => now);
  for (let i = 0; i < 3; i++) traffic.finished(summary({ model: "often", ttftMicros: 200_000 }));
  traffic.finished(summary({ model: "seldom", outcome: "failed", cachedTokens: undefined }));
  now += 30_000;
  traffic.finished(summary({ model: "often", ttftMicros: 600_000 }));
  const { models, lastMinute } = traffic.view(-1);
  assert.deepEqual(
    models.map(({ model, requests, failed, ttft, hitRatio }) => [model, requests, failed, ttft?.mean, hitRatio]),
    [
      ["often", 4, 0, 300, 0.6],
      ["seldom", 1, 1, 100, null],
    ],
  );
  assert.equal(lastMinute.requests, 5);
  for (let i = 0; i < 40; i++) traffic.finished(summary({ model: `m${i}` }));
  const many = traffic.view(-1).models;
  assert.equal(many.length, 16);
  assert.deepEqual([many[0]?.model, many[0]?.requests], ["other models", 25]);
  now += 90_000;
  assert.deepEqual(traffic.view(-1).models, []);
});

test("each endpoint has its requests of the last minute, what failed there, and its hits beside those expected", () => {
  let now = START;
  const traffic = new RecentTraffic(() => now);
  const fault = (kind: FaultKind, endpoint?: string) =>
    traffic.fault({ kind, detail: "", done: "", ...(endpoint !== undefined && { endpoint }) });
  traffic.finished(summary({ endpoint: "a" }));
  fault("attempt-failed", "b");
  fault("endpoint-lost", "b");
  fault("gateway-stood-still");
  now += 5_000;
  traffic.finished(summary({ endpoint: "a", cachedTokens: 0, hitTokens: 96, ttftMicros: undefined }));
  traffic.finished(summary({ endpoint: "a", cachedTokens: undefined, hitTokens: 100 }));
  fault("answer-cut", "b");
  traffic.finished(summary({ endpoint: "" }));
  const { a, b, ...others } = Object.fromEntries(traffic.endpoints());
  assert.deepEqual(others, {});
  assert.deepEqual([a!.requests, a!.failedAttempts, a!.hitRatio, a!.expectedHitRatio], [3, 0, 0.3, 0.8]);
  assert.ok(Math.abs(a!.ttftMillis! - 100) < 5);
  const none = { requests: 0, ttftMillis: null, expectedHitRatio: null, hitRatio: null };
  assert.deepEqual(b, { ...none, failedAttempts: 2 });
  now += 65_000;
  assert.deepEqual(Object.fromEntries(traffic.endpoints()), {}, "older than the last minute");
});
