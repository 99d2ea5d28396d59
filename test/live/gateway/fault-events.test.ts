import assert from "node:assert/strict";
import { test } from "node:test";

import { CHAT, NEVER_OPEN, type Rig, type RigOptions, ask, startRig } from "./rig.ts";
import { type Reply, STREAM_HEAD, chatAnswer, jsonReply, roleChunk, tokenChunk } from "./stub-engine.ts";

const STREAM = { ...CHAT, stream: true };
const broken: Reply = (_request, socket) => socket.write(jsonReply(500, { error: "EngineCore died" }));
const good: Reply = (_request, socket) => socket.write(jsonReply(200, chatAnswer("good")));
const cut: Reply = (_request, socket) =>
  void socket.write(STREAM_HEAD + roleChunk() + tokenChunk("one"), () => socket.end());

async function withRig(replies: readonly Reply[], body: (rig: Rig) => Promise<void>, options: RigOptions = {}) {
  const rig = await startRig(replies, { breaker: NEVER_OPEN, ...options });
  try {
    await body(rig);
  } finally {
    await rig.close();
  }
}

test("a failed attempt is reported with where it failed, how, and where the request went", async () => {
  await withRig([broken, good], async (rig) => {
    await ask(rig.url, CHAT, { headers: { "x-request-id": "mine" } });
    assert.deepEqual(rig.faults, [
      {
        kind: "attempt-failed",
        requestId: "mine",
        endpoint: "a",
        detail: "status: it answered with a server error",
        done: "sent to b",
        figures: { attempts: 1 },
      },
    ]);
  });
});

test("a retry that the budget denies is reported, with what the client got", async () => {
  const limits = { retryRatio: 0, retryBurst: 0 };
  await withRig(
    [broken, good],
    async (rig) => {
      assert.equal((await ask(rig.url, CHAT)).status, 500);
      assert.deepEqual(
        rig.faults.map(({ kind, endpoint, done }) => [kind, endpoint, done]),
        [["retry-denied", "a", "not retried, the retry budget is spent: the client got 500"]],
      );
    },
    { limits },
  );
});

test("when all endpoints fail, each attempt is a line and the last one has the client's status", async () => {
  await withRig([broken, broken], async (rig) => {
    await ask(rig.url, CHAT);
    assert.deepEqual(
      rig.faults.map(({ endpoint, done }) => [endpoint, done]),
      [
        ["a", "sent to b"],
        ["b", "not retried, no other endpoint can take it: the client got 500"],
      ],
    );
  });
});

test("a cut answer is reported with how far it came", async () => {
  await withRig([cut], async (rig) => {
    await ask(rig.url, STREAM);
    const [event] = rig.faults;
    assert.equal(event?.kind, "answer-cut");
    assert.equal(event?.detail, "cut: the connection broke");
    assert.deepEqual(event?.figures, { attempts: 1, outputTokens: 1 });
  });
});
