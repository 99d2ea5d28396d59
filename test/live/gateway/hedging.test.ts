import assert from "node:assert/strict";
import { test } from "node:test";
import { holdClock } from "./held-clock.ts";
import { CHAT, NEVER_OPEN, type Rig, ask, startRig } from "./rig.ts";
import { type Reply, STREAM_HEAD, jsonReply, streamOf } from "./stub-engine.ts";

const STREAM = { ...CHAT, stream: true };
const LIMITS = { hedgeMillis: 5, hedgeShareMax: 1, sweepMillis: 10 };
const good: Reply = (_request, socket) => void socket.write(streamOf(4));
/** Takes the request and is silent. */
const silent: Reply = () => {};
const headOnly: Reply = (_request, socket) => void socket.write(STREAM_HEAD);
const full: Reply = (_request, socket) =>
  void socket.write(jsonReply(503, { error: { message: "full", type: "error", param: null, code: 503 } }));

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise<void>((resolve) => setImmediate(resolve));
}

async function withRig(replies: readonly Reply[], limits: object, body: (rig: Rig) => Promise<void>): Promise<void> {
  const rig = await startRig(replies, { breaker: NEVER_OPEN, limits: { ...LIMITS, ...limits } });
  try {
    await body(rig);
  } finally {
    await rig.close();
  }
}

for (const [name, slow] of [
  ["silent", silent],
  ["with nothing but a head", headOnly],
] as const) {
  test(`a first engine that is ${name}: the second one answers, the first one's connection is closed`, async () => {
    await withRig([slow, good], {}, async (rig) => {
      const got = await ask(rig.url, STREAM);
      assert.equal(got.status, 200);
      assert.equal(got.headers["x-gnomon-endpoint"], "b");
      assert.ok(got.body.includes("[DONE]") && !got.cut);
      assert.deepEqual(rig.kinds(), [
        "request-arrived",
        "request-hedged",
        "hedge-settled",
        "first-token",
        "request-finished",
      ]);
      assert.deepEqual(rig.gateway.counters.hedges, { won: 1 });
      assert.equal(rig.router.openCharges, 0);
      assert.equal(rig.summaries[0]!.endpoint, "b");
      await until(() => rig.engines[0]!.sockets.size === 0);
    });
  });
}

test("a second engine that turns the request down leaves it to the first one", async () => {
  const refused = Promise.withResolvers<void>();
  const late: Reply = (_request, socket) => void refused.promise.then(() => socket.write(streamOf(4)));
  const refuses: Reply = (request, socket) => {
    full(request, socket);
    setImmediate(refused.resolve);
  };
  await withRig([late, refuses], {}, async (rig) => {
    const got = await ask(rig.url, STREAM);
    assert.equal(got.status, 200);
    assert.equal(got.headers["x-gnomon-endpoint"], "a");
    assert.equal(Object.values(rig.gateway.counters.hedges).length, 1);
    assert.equal(rig.router.openCharges, 0);
  });
});

test("a second engine is asked once the first has been silent for so long, and not before", async (t) => {
  const clock = holdClock(t);
  await withRig([silent, good], { hedgeMillis: 150_000 }, async (rig) => {
    const asked = ask(rig.url, STREAM);
    await rig.engines[0]!.asked(1);
    clock.advance(149_000);
    await clock.swept(2);
    assert.deepEqual(rig.kinds(), ["request-arrived"]);
    clock.advance(1_001);
    assert.equal((await asked).headers["x-gnomon-endpoint"], "b");
  });
});

test("a client that leaves ends both", async () => {
  const controller = new AbortController();
  const leaves: Reply = () => controller.abort();
  await withRig([silent, leaves], {}, async (rig) => {
    await assert.rejects(
      fetch(`${rig.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(STREAM),
        signal: controller.signal,
      }),
    );
    await until(() => rig.engines[0]!.sockets.size === 0);
    await until(() => rig.engines[1]!.sockets.size === 0 && rig.summaries.length === 1);
    assert.deepEqual(rig.gateway.counters.hedges, { dropped: 1 });
    assert.equal(rig.router.openCharges, 0);
  });
});
