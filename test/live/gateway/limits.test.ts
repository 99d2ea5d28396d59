import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, test } from "node:test";

import type { GatewayLimits } from "#live/request/limits.ts";

import { CHAT, type Got, NEVER_OPEN, type Rig, ask, errorOf, startRig } from "./rig.ts";
import { type Reply, STREAM_HEAD, chatAnswer, jsonReply, roleChunk, streamOf, tokenChunk } from "./stub-engine.ts";

const STREAM = { ...CHAT, stream: true };
const silent: Reply = () => {};

async function limited(
  replies: readonly Reply[],
  limits: Partial<GatewayLimits>,
  body: object = STREAM,
): Promise<{ got: Got; rig: Rig }> {
  const rig = await startRig(replies, { limits, breaker: NEVER_OPEN });
  const got = await ask(rig.url, body);
  await rig.close();
  return { got, rig };
}

describe("limits of time", () => {
  const first = { firstByteMillisMax: 30 };

  test("fact 9: a head without a body is no first byte", async () => {
    const { got, rig } = await limited([(_r, s) => void s.write(STREAM_HEAD + roleChunk())], first);
    assert.equal(got.status, 504);
    assert.equal(errorOf(got).code, 504);
    assert.equal(got.headers["x-gnomon-reason"], "deadline");
    assert.equal(rig.summaries[0]!.outcome, "timeout");
    assert.equal(rig.gateway.counters.timeouts, 1);
    assert.deepEqual(rig.gateway.counters.faults, { timeout: 1 });
  });

  test("an engine that never answers is 504, and is not tried again", async () => {
    const { got, rig } = await limited([silent, (_r, s) => void s.write(streamOf(2))], first);
    assert.equal(got.status, 504);
    assert.deepEqual(rig.retried, []);
  });

  test("a stream that falls silent ends with an error event", async () => {
    const { got, rig } = await limited([(_r, s) => void s.write(STREAM_HEAD + tokenChunk("x"))], { idleMillisMax: 30 });
    assert.equal(got.status, 200);
    assert.equal(got.cut, false);
    assert.match(got.body, /nothing for too long/);
    assert.ok(!got.body.includes("[DONE]"));
    assert.equal(rig.summaries[0]!.outcome, "timeout");
  });

  test("an answer that is not a stream has only the total limit", async () => {
    const slow: Reply = (_r, s) => void setTimeout(() => s.write(jsonReply(200, chatAnswer("slow"))), 60);
    const { got } = await limited([slow], { firstByteMillisMax: 10, idleMillisMax: 10 }, CHAT);
    assert.equal(got.status, 200);
    const late = await limited([silent], { totalMillisMax: 30 }, CHAT);
    assert.equal(late.got.status, 504);
  });

  test("a stream that goes on for too long is cut openly", async () => {
    const endless: Reply = (_r, s) => {
      s.write(STREAM_HEAD);
      const timer = setInterval(() => s.write(tokenChunk("x")), 5);
      s.on("close", () => clearInterval(timer));
    };
    const { got, rig } = await limited([endless], { totalMillisMax: 60 });
    assert.ok(got.body.includes('"x"'));
    assert.match(got.body, /incomplete/);
    assert.equal(rig.summaries[0]!.outcome, "timeout");
  });

  test("a long answer outlives the limits on receiving the request", async () => {
    const slow: Reply = (_r, s) => void setTimeout(() => s.write(jsonReply(200, chatAnswer("slow"))), 150);
    const { got } = await limited([slow], { headersMillisMax: 40, requestReadMillisMax: 40 }, CHAT);
    assert.equal(got.status, 200);
  });

  test("a head that was held is shown after a while, and a retry still works behind it", async () => {
    const breaks: Reply = (_r, s) => {
      s.write(STREAM_HEAD);
      setTimeout(() => s.resetAndDestroy(), 60);
    };
    const { got, rig } = await limited([breaks, (_r, s) => void s.write(streamOf(3))], { holdMillis: 20 });
    assert.equal(got.status, 200);
    assert.equal(got.headers["x-gnomon-endpoint"], "a");
    assert.ok(got.body.endsWith("data: [DONE]\n\n"));
    assert.deepEqual(rig.retried, ["cut"]);
    const refused = await limited([breaks, (_r, s) => void s.write(jsonReply(500, {}))], { holdMillis: 20 });
    assert.equal(refused.got.cut, false);
    assert.match(refused.got.body, /^data: \{"error"/);
  });
});

describe("limits of room", () => {
  test("more requests than may be in flight are 503", async () => {
    const rig = await startRig([silent], { limits: { requestsInFlightMax: 2 } });
    const waiting = [ask(rig.url, CHAT), ask(rig.url, CHAT)].map((got) => got.catch(() => undefined));
    while (rig.gateway.inFlight() < 2) await new Promise((resolve) => setTimeout(resolve, 2));
    const got = await ask(rig.url, CHAT);
    assert.equal(got.status, 503);
    assert.equal(got.headers["x-gnomon-reason"], "full");
    assert.equal(got.headers["retry-after"], "1");
    await rig.close();
    await Promise.all(waiting);
  });

  test("more body bytes than may be held are 429", async () => {
    const rig = await startRig([silent], { limits: { bodyBytesInFlightMax: 150 } });
    const waiting = ask(rig.url, CHAT).catch(() => undefined);
    while (rig.engines[0]!.requests.length < 1) await new Promise((resolve) => setTimeout(resolve, 2));
    const got = await ask(rig.url, CHAT);
    assert.equal(got.status, 429);
    await rig.close();
    await waiting;
  });

  test("more requests than an endpoint takes go to another, and the pool never queues", async () => {
    const rig = await startRig([silent, (_r, s) => void s.write(jsonReply(200, chatAnswer("b")))], {
      limits: { upstreamConnectionsMax: 1 },
      breaker: NEVER_OPEN,
    });
    const waiting = ask(rig.url, CHAT).catch(() => undefined);
    while (rig.engines[0]!.requests.length < 1) await new Promise((resolve) => setTimeout(resolve, 2));
    for (let i = 0; i < 3; i++) assert.equal((await ask(rig.url, CHAT)).headers["x-gnomon-endpoint"], "b");
    assert.equal(rig.engines[0]!.requests.length, 1);
    await rig.close();
    await waiting;
  });

  test("more connections than allowed are dropped and counted", async () => {
    const rig = await startRig([silent], { limits: { clientConnectionsMax: 1 } });
    const port = Number(new URL(rig.url).port);
    const first = connect(port, "127.0.0.1");
    await new Promise((resolve) => first.once("connect", resolve));
    const second = connect(port, "127.0.0.1");
    second.on("error", () => {});
    await new Promise((resolve) => second.once("close", resolve));
    assert.equal(rig.gateway.counters.connectionsDropped, 1);
    first.destroy();
    await rig.close();
  });

  test("a client that does not read stops the engine, and is cut off in the end", async () => {
    let sent = 0;
    const flood: Reply = (_r, s) => {
      s.write(STREAM_HEAD);
      const piece = tokenChunk("x".repeat(8_000));
      const more = (): void => {
        if (!s.writable) return;
        sent++;
        if (s.write(piece)) setImmediate(more);
      };
      s.on("drain", more);
      more();
    };
    const rig = await startRig([flood], { limits: { writeStallMillisMax: 150, idleMillisMax: 50 } });
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    const body = JSON.stringify(STREAM);
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
    const start = Date.now();
    while (rig.summaries.length === 0 && Date.now() - start < 4000)
      await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(rig.summaries[0]!.outcome, "aborted");
    assert.equal(rig.gateway.counters.clientStalls, 1);
    assert.ok(sent < 5_000, `the engine sent ${sent} pieces of 8 KB`);
    socket.destroy();
    await rig.close();
  });
});

test("one sweep reports to the router in order of time, whatever it finds", async () => {
  const begun: Reply = (_r, s) => void s.write(STREAM_HEAD + roleChunk() + tokenChunk("a") + tokenChunk("b"));
  const rig = await startRig([begun, silent], {
    breaker: NEVER_OPEN,
    limits: { firstByteMillisMax: 150, progressMillis: 150, sweepMillis: 400 },
  });
  const [first] = [ask(rig.url, STREAM)];
  while (!rig.kinds().includes("first-token")) await new Promise((resolve) => setTimeout(resolve, 1));
  rig.engines[0]!.reply = silent;
  const others = Array.from({ length: 20 }, () => ask(rig.url, STREAM));
  assert.ok((await Promise.all(others)).every(({ status }) => status === 504));
  assert.ok(rig.kinds().includes("progress"));
  await rig.close();
  assert.equal((await first).cut, true);
});
