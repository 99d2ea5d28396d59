import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { CHAT, NEVER_OPEN, ask, startRig } from "./rig.ts";
import {
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  event,
  jsonReply,
  roleChunk,
  tokenChunk,
} from "./stub-engine.ts";

const silent: Reply = () => {};
const ok: Reply = (_r, s) => void s.write(jsonReply(200, chatAnswer("ok")));
const STREAM = { ...CHAT, stream: true };
const limits = { lostMillisMax: 30 };

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

  test("a stream that began goes on", async () => {
    const begun: Reply = (_r, s) => {
      s.write(STREAM_HEAD + tokenChunk("one"));
      setTimeout(() => s.write(tokenChunk("two", "stop") + event("[DONE]") + STREAM_END), 120);
    };
    const rig = await startRig([begun, ok], { limits, breaker: NEVER_OPEN });
    rig.directory.get("a")!.state = "lost";
    const got = await ask(rig.url, STREAM);
    assert.match(got.body, /one.*two.*\[DONE\]/s);
    assert.deepEqual(rig.retried, []);
    await rig.close();
  });

  test("a request at an engine that is there is waited for", async () => {
    const late: Reply = (_r, s) => void setTimeout(() => s.write(jsonReply(200, chatAnswer("late"))), 120);
    const rig = await startRig([late, ok], { limits, breaker: NEVER_OPEN });
    const got = await ask(rig.url, CHAT);
    assert.equal(got.headers["x-gnomon-endpoint"], "a");
    await rig.close();
  });
});
