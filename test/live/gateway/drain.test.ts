import assert from "node:assert/strict";
import { test } from "node:test";

import { CHAT, ask, errorOf, startRig } from "./rig.ts";
import { type Reply, STREAM_HEAD, roleChunk, tokenChunk } from "./stub-engine.ts";

const silent: Reply = () => {};
const begun: Reply = (_r, s) => void s.write(STREAM_HEAD + roleChunk() + tokenChunk("one"));

test("what has not ended as a drain's grace is over gets an answer that names why: 503, or an error event in its stream", async () => {
  const reply: Reply = (request, socket) => (request.index === 0 ? begun : silent)(request, socket);
  const rig = await startRig([reply]);
  const stream = ask(rig.url, { ...CHAT, stream: true });
  while (!rig.kinds().includes("first-token")) await new Promise((resolve) => setTimeout(resolve, 1));
  const waiting = ask(rig.url, CHAT);
  await rig.engines[0]!.asked(2);
  const { requestsCut } = await rig.gateway.close(20);
  assert.equal(requestsCut, 2);
  const [cut, refused] = await Promise.all([stream, waiting]);
  assert.match(cut.body, /one.*"error"/s);
  assert.doesNotMatch(cut.body, /\[DONE\]/);
  assert.deepEqual(
    [refused.status, errorOf(refused).type, refused.headers["retry-after"]],
    [503, "ServiceUnavailableError", "1"],
  );
  await rig.engines[0]!.kill();
  assert.equal(rig.router.openCharges, 0);
  assert.equal(rig.router.inFlight, 0);
});
