import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { nowMicros } from "#live/base/clock.ts";
import { type HeldClock, holdClock } from "./held-clock.ts";
import { CHAT, NEVER_OPEN, type Rig, ask, startRig } from "./rig.ts";
import {
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  event,
  jsonReply,
  roleChunk,
  streamOf,
  tokenChunk,
} from "./stub-engine.ts";

const silent: Reply = () => {};
const ok: Reply = (_r, s) => void s.write(jsonReply(200, chatAnswer("ok")));
/** Answers as it was asked. */
const stream200: Reply = (request, s) => {
  const { stream = false } = JSON.parse(request.body.toString()) as { stream?: boolean };
  s.write(stream ? streamOf(3) : jsonReply(200, chatAnswer("ok")));
};
const STREAM = { ...CHAT, stream: true };
const limits = { lostMillisMax: 30 };

/** What makes an endpoint one to be left. */
const TROUBLES: readonly (readonly [name: string, fault: string, begin: (rig: Rig, id: string) => void])[] = [
  ["is lost", "connect", (rig, id) => void (rig.directory.get(id)!.state = "lost")],
  [
    "hangs",
    "hung",
    (rig, endpoint) => rig.intake.accept({ kind: "endpoint-suspended", at: nowMicros(), endpoint, reason: "silent" }),
  ],
];

/** Resolves when an engine has got so many requests. */
function reached(rig: Rig, engine: number, requests: number): Promise<void> {
  return rig.engines[engine]!.asked(requests);
}

/** Resolves when the client has the first token, and a sweep has seen that it came. */
async function begun(rig: Rig, clock: HeldClock): Promise<void> {
  while (!rig.kinds().includes("first-token")) await clock.swept();
  await clock.swept();
}

for (const [name, fault, begin] of TROUBLES)
  describe(`an engine that ${name} while it has requests`, () => {
    const one: Reply = (_r, s) => void s.write(STREAM_HEAD + roleChunk() + tokenChunk("one"));

    for (const body of [CHAT, STREAM])
      test(`those without a byte go to another one at once${"stream" in body ? ", streams too" : ""}`, async () => {
        const rig = await startRig([silent, stream200], { limits: { lostMillisMax: 3_600_000 } });
        const asked = ask(rig.url, body);
        await reached(rig, 0, 1);
        begin(rig, "a");
        const got = await asked;
        assert.deepEqual([got.status, got.headers["x-gnomon-endpoint"]], [200, "b"]);
        assert.deepEqual(rig.retried, [fault]);
        assert.deepEqual(rig.gateway.counters.moved, { [fault === "hung" ? "hung" : "lost"]: 1 });
        await rig.close();
      });

    test("an answer that began and is silent is cut, and never looks whole", async (t) => {
      const clock = holdClock(t);
      const rig = await startRig([one, stream200], { limits: { cutMillisMax: 30_000 } });
      const asked = ask(rig.url, STREAM);
      await begun(rig, clock);
      begin(rig, "a");
      clock.advance(29_000);
      await clock.swept(2);
      assert.equal(rig.summaries.length, 0);
      clock.advance(1_001);
      const got = await asked;
      assert.match(got.body, /one.*"error".*incomplete/s);
      assert.doesNotMatch(got.body, /\[DONE\]/);
      assert.equal(rig.engines[1]!.requests.length, 0);
      assert.equal(rig.summaries[0]!.outcome, "failed");
      assert.equal(rig.gateway.counters.cuts, 1);
      await rig.close();
    });

    test("nothing is moved beyond the retry budget", async () => {
      const rig = await startRig([silent, stream200], { limits: { retryBurst: 1, retryRatio: 0, lostMillisMax: 20 } });
      const asked = [ask(rig.url, STREAM), ask(rig.url, STREAM)];
      await reached(rig, 0, 1);
      await reached(rig, 1, 1);
      rig.intake.accept({ kind: "endpoint-cordoned", at: nowMicros(), endpoint: "b" });
      asked.push(ask(rig.url, STREAM), ask(rig.url, STREAM));
      await reached(rig, 0, 3);
      rig.intake.accept({ kind: "endpoint-uncordoned", at: nowMicros(), endpoint: "b" });
      begin(rig, "a");
      while (rig.summaries.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
      assert.equal(rig.gateway.counters.moved[fault === "hung" ? "hung" : "lost"], 1);
      await rig.engines[0]!.kill();
      await Promise.all(asked);
      await rig.close();
    });
  });

test("where all engines hang their requests are waited for and new ones go on to them", async (t) => {
  let answer = (): void => {};
  const late: Reply = (request, s) => {
    if (request.index > 0) return void s.write(jsonReply(200, chatAnswer("new")));
    answer = () => void s.write(jsonReply(200, chatAnswer("late")));
  };
  const clock = holdClock(t);
  const rig = await startRig([late], { limits: { lostMillisMax: 10_000, cutMillisMax: 10_000 } });
  const first = ask(rig.url, CHAT);
  await reached(rig, 0, 1);
  rig.intake.accept({ kind: "endpoint-suspended", at: nowMicros(), endpoint: "a", reason: "stalled" });
  assert.match((await ask(rig.url, CHAT)).body, /new/);
  clock.advance(60_000);
  await clock.swept(2);
  answer();
  assert.match((await first).body, /late/);
  await rig.close();
});

test("a request at a lost engine that no other may take gets an error that states when to try again", async (t) => {
  const clock = holdClock(t);
  const rig = await startRig([silent], { limits: { lostMillisMax: 30_000 } });
  const asked = ask(rig.url, CHAT);
  await reached(rig, 0, 1);
  rig.directory.get("a")!.state = "lost";
  await clock.swept(2);
  clock.advance(29_000);
  await clock.swept(2);
  assert.equal(rig.summaries.length, 0);
  clock.advance(1_001);
  const got = await asked;
  assert.deepEqual([got.status, got.headers["retry-after"]], [502, "1"]);
  await rig.close();
});

describe("an engine is lost and keeps its connections open", () => {
  for (const [name, reply] of [
    ["a request that it never answered", silent],
    ["a stream of which it sent no token", (_r, s) => void s.write(STREAM_HEAD + roleChunk())],
  ] as const satisfies readonly (readonly [string, Reply])[])
    test(`${name} goes to another one`, async () => {
      const rig = await startRig([reply, ok], { limits, breaker: NEVER_OPEN });
      rig.directory.get("a")!.state = "lost";
      const got = await ask(rig.url, STREAM);
      assert.equal(got.status, 200);
      assert.equal(got.headers["x-gnomon-endpoint"], "b");
      assert.deepEqual(rig.retried, ["connect"]);
      await rig.close();
    });

  test("a stream that began goes on", async (t) => {
    let goOn = (): void => {};
    const two: Reply = (_r, s) => {
      s.write(STREAM_HEAD + tokenChunk("one"));
      goOn = () => void s.write(tokenChunk("two", "stop") + event("[DONE]") + STREAM_END);
    };
    const clock = holdClock(t);
    const rig = await startRig([two, ok], { limits, breaker: NEVER_OPEN });
    const asked = ask(rig.url, STREAM);
    await begun(rig, clock);
    rig.directory.get("a")!.state = "lost";
    clock.advance(120);
    await clock.swept(2);
    goOn();
    const got = await asked;
    assert.match(got.body, /one.*two.*\[DONE\]/s);
    assert.deepEqual(rig.retried, []);
    await rig.close();
  });

  test("a request at an engine that is there is waited for", async (t) => {
    let answer = (): void => {};
    const late: Reply = (_r, s) => {
      answer = () => void s.write(jsonReply(200, chatAnswer("late")));
    };
    const clock = holdClock(t);
    const rig = await startRig([late, ok], { limits, breaker: NEVER_OPEN });
    const asked = ask(rig.url, CHAT);
    await reached(rig, 0, 1);
    clock.advance(120);
    await clock.swept(2);
    answer();
    const got = await asked;
    assert.equal(got.headers["x-gnomon-endpoint"], "a");
    await rig.close();
  });
});
