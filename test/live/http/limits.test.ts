import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, describe, test } from "node:test";

import type { GatewayLimits } from "#live/http/limits.ts";

import { type HeldClock, holdClock } from "../gateway/held-clock.ts";
import { CHAT, type Got, NEVER_OPEN, type Rig, ask, errorOf, startRig } from "../gateway/rig.ts";
import {
  type Reply,
  STREAM_HEAD,
  chatAnswer,
  jsonReply,
  roleChunk,
  streamOf,
  tokenChunk,
} from "../gateway/stub-engine.ts";

const STREAM = { ...CHAT, stream: true };
const silent: Reply = () => {};
/** Sweeps come by the real clock, often, and find the time that the test made. */
const SWEEP_MILLIS = 2;

/** A request at a gateway whose clock stands. */
async function limited(
  t: TestContext,
  replies: readonly Reply[],
  limits: Partial<GatewayLimits>,
  { body = STREAM, onHead }: { body?: object; onHead?: () => void } = {},
): Promise<{ got: Promise<Got>; rig: Rig; clock: HeldClock }> {
  const clock = holdClock(t);
  const rig = await startRig(replies, { limits: { sweepMillis: SWEEP_MILLIS, ...limits }, breaker: NEVER_OPEN });
  t.after(() => rig.close());
  const got = ask(rig.url, body, { ...(onHead !== undefined && { onHead }) });
  return { got, rig, clock };
}

/** Until the engine has its first request, and what it sent at once has been read. */
async function reached({ engines }: Rig, clock: HeldClock): Promise<void> {
  await until(clock, () => engines[0]!.requests.length > 0);
  await clock.swept(3);
}

/** Looks after each sweep. */
async function until(clock: HeldClock, holds: () => boolean): Promise<void> {
  while (!holds()) await clock.swept();
}

describe("limits of time", () => {
  const first = { firstByteMillisMax: 30_000 };

  test("a head without a body is no first byte", async (t) => {
    const head: Reply = (_r, s) => void s.write(STREAM_HEAD + roleChunk());
    const { got: answer, rig, clock } = await limited(t, [head], first);
    await reached(rig, clock);
    clock.advance(29_000);
    await clock.swept(2);
    assert.equal(rig.summaries.length, 0);
    clock.advance(1_001);
    const got = await answer;
    assert.equal(got.status, 504);
    assert.equal(errorOf(got).code, 504);
    assert.equal(got.headers["x-gnomon-reason"], "deadline");
    assert.equal(rig.summaries[0]!.outcome, "timeout");
    assert.equal(rig.gateway.counters.timeouts, 1);
    assert.deepEqual(rig.gateway.counters.faults, { timeout: 1 });
  });

  test("an engine that never answers is 504, and is not tried again", async (t) => {
    const { got, rig, clock } = await limited(t, [silent, (_r, s) => void s.write(streamOf(2))], first);
    await reached(rig, clock);
    clock.advance(30_001);
    assert.equal((await got).status, 504);
    assert.deepEqual(rig.retried, []);
  });

  test("a stream that falls silent ends with an error event, and one that goes on does not", async (t) => {
    let more = (): void => {};
    const talks: Reply = (_r, s) => {
      more = () => void s.write(tokenChunk("x"));
      s.write(STREAM_HEAD + tokenChunk("x"));
    };
    const { got: answer, rig, clock } = await limited(t, [talks], { idleMillisMax: 30_000, progressTokens: 1 });
    await until(clock, () => rig.kinds().includes("first-token"));
    for (let i = 0; i < 3; i++) {
      // A sweep takes note of the piece before time goes on.
      const { progressInputs } = rig.gateway.counters;
      more();
      await until(clock, () => rig.gateway.counters.progressInputs > progressInputs);
      await clock.swept();
      clock.advance(20_000);
    }
    await clock.swept();
    assert.equal(rig.summaries.length, 0);
    clock.advance(10_001);
    const got = await answer;
    assert.equal(got.status, 200);
    assert.equal(got.cut, false);
    assert.match(got.body, /between two parts of it, was over/);
    assert.ok(!got.body.includes("[DONE]"));
    assert.equal(rig.summaries[0]!.outcome, "timeout");
  });

  test("an answer that is not a stream has only the total limit", async (t) => {
    let answer = (): void => {};
    const slow: Reply = (_r, s) => {
      answer = () => void s.write(jsonReply(200, chatAnswer("slow")));
    };
    const limits = { firstByteMillisMax: 10_000, idleMillisMax: 10_000, totalMillisMax: 100_000 };
    const { got, rig, clock } = await limited(t, [slow, silent], limits, { body: CHAT });
    await reached(rig, clock);
    clock.advance(90_000);
    await clock.swept(2);
    answer();
    assert.equal((await got).status, 200);
    rig.engines[0]!.reply = silent;
    const late = ask(rig.url, CHAT);
    await until(clock, () => rig.engines[0]!.requests.length === 2);
    clock.advance(100_001);
    assert.equal((await late).status, 504);
  });

  test("a stream that goes on for too long is cut openly", async (t) => {
    let more = (): void => {};
    const endless: Reply = (_r, s) => {
      more = () => void s.write(tokenChunk("x"));
      s.write(STREAM_HEAD);
    };
    const { got: answer, rig, clock } = await limited(t, [endless], { totalMillisMax: 60_000 });
    await reached(rig, clock);
    while (rig.summaries.length === 0) {
      more();
      await clock.swept();
      clock.advance(20_000);
    }
    const got = await answer;
    assert.ok(got.body.includes('"x"'));
    assert.match(got.body, /incomplete/);
    assert.equal(rig.summaries[0]!.outcome, "timeout");
  });

  test("a long answer outlives the limits on receiving the request", async (t) => {
    let answer = (): void => {};
    const slow: Reply = (_r, s) => {
      answer = () => void s.write(jsonReply(200, chatAnswer("slow")));
    };
    const rig = await startRig([slow], { limits: { headersMillisMax: 150, requestReadMillisMax: 150 } });
    t.after(() => rig.close());
    const got = ask(rig.url, CHAT);
    await rig.engines[0]!.asked(1);
    // Another one, begun later, whose head does not end: once the limit has met it, it has passed over the first.
    const late = connect(Number(new URL(rig.url).port), "127.0.0.1");
    late.write("POST /v1/chat/completions HTTP/1.1\r\n");
    late.resume();
    await new Promise((resolve) => late.once("close", resolve));
    answer();
    assert.equal((await got).status, 200);
  });

  test("a head that was held is shown after a while, and a retry still works behind it", async (t) => {
    const large = jsonReply(200, chatAnswer("x".repeat(5_000)));
    const seconds = [streamOf(3), jsonReply(500, {}), jsonReply(200, chatAnswer("x")), large, jsonReply(400, {})];
    for (const second of seconds) {
      let leave = (): void => {};
      const breaks: Reply = (_r, s) => {
        leave = () => void s.resetAndDestroy();
        s.write(STREAM_HEAD);
      };
      const shown = Promise.withResolvers<void>();
      const {
        got: answer,
        rig,
        clock,
      } = await limited(
        t,
        [breaks, (_r, s) => void s.write(second)],
        { holdMillis: 20_000, answerBytesInspected: 1_000 },
        { onHead: shown.resolve },
      );
      await reached(rig, clock);
      assert.equal(rig.summaries.length, 0);
      clock.advance(20_001);
      await shown.promise;
      leave();
      const got = await answer;
      assert.equal(got.status, 200);
      assert.equal(got.headers["x-gnomon-endpoint"], "a");
      assert.deepEqual(rig.retried, ["cut"]);
      assert.equal(got.cut, false);
      assert.match(got.body, second.includes("[DONE]") ? /data: \[DONE\]\n\n$/ : /^data: \{"error"/);
      t.mock.restoreAll();
    }
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
    await rig.engines[0]!.asked(1);
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
    await rig.engines[0]!.asked(1);
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

  test("a client that does not read stops the engine, and is cut off in the end", async (t) => {
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
    const clock = holdClock(t);
    const rig = await startRig([flood], {
      limits: { sweepMillis: SWEEP_MILLIS, writeStallMillisMax: 150_000, idleMillisMax: 50_000 },
    });
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    const body = JSON.stringify(STREAM);
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
    const isStill = async (): Promise<boolean> => {
      const before = sent;
      await clock.swept(20);
      return sent > 0 && sent === before;
    };
    while (!(await isStill())) continue;
    clock.advance(149_000);
    await clock.swept(2);
    assert.equal(rig.summaries.length, 0, "who waits for its client is not idle");
    clock.advance(1_001);
    await until(clock, () => rig.summaries.length > 0);
    assert.equal(rig.summaries[0]!.outcome, "aborted");
    assert.equal(rig.gateway.counters.clientStalls, 1);
    assert.ok(sent < 5_000, `the engine sent ${sent} pieces of 8 KB`);
    socket.destroy();
    await rig.close();
  });
});

test("one sweep reports to the router in order of time, whatever it finds", async (t) => {
  const begun: Reply = (_r, s) => void s.write(STREAM_HEAD + roleChunk() + tokenChunk("a") + tokenChunk("b"));
  const clock = holdClock(t);
  const rig = await startRig([begun, silent], {
    breaker: NEVER_OPEN,
    limits: { firstByteMillisMax: 150_000, progressMillis: 150_000, idleMillisMax: 600_000, sweepMillis: SWEEP_MILLIS },
  });
  const first = ask(rig.url, STREAM);
  await until(clock, () => rig.kinds().includes("first-token"));
  rig.engines[0]!.reply = silent;
  const others = Array.from({ length: 20 }, () => ask(rig.url, STREAM));
  await until(clock, () => rig.engines[0]!.requests.length + rig.engines[1]!.requests.length === 21);
  clock.advance(150_001);
  assert.ok((await Promise.all(others)).every(({ status }) => status === 504));
  assert.ok(rig.kinds().includes("progress"));
  await rig.close();
  const { cut, body } = await first;
  assert.deepEqual([cut, /"error":/.test(body)], [false, true], body);
});
