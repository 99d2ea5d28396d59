import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { CHAT, ask, errorOf, startRig } from "./rig.ts";
import { type Reply, STREAM_HEAD, roleChunk, tokenChunk } from "./stub-engine.ts";

const STREAM = { ...CHAT, stream: true };

/** Goes on until the gateway leaves it. */
function endless(closed: () => void): Reply {
  return (_request, socket) => {
    socket.write(STREAM_HEAD + roleChunk());
    const timer = setInterval(() => socket.write(tokenChunk("x")), 2);
    socket.on("close", () => {
      clearInterval(timer);
      closed();
    });
  };
}

/** Where a defect of the gateway's own meets a request, and what its client gets. */
describe("a defect in the middle of a request", () => {
  for (const [kind, shown] of [
    ["first-token", "an error"],
    ["progress", "a cut answer"],
  ] as const)
    test(`while the router is informed of ${kind}: the client gets ${shown}, and the engine stops`, async () => {
      const closed: string[] = [];
      const rig = await startRig([endless(() => void closed.push("a"))], { limits: { progressTokens: 2 } });
      const finished: string[] = [];
      rig.intake.listen({
        accepted(input) {
          if (input.kind === "request-finished") finished.push(input.outcome);
          if (input.kind === kind) throw new Error(`a defect at ${kind}`);
        },
      });
      const got = await ask(rig.url, STREAM);
      if (kind === "first-token") {
        assert.deepEqual([got.status, errorOf(got).code, got.cut], [500, 500, false]);
      } else {
        assert.deepEqual([got.status, got.cut], [200, true]);
      }
      const start = Date.now();
      while (closed.length === 0 && Date.now() - start < 60_000) await new Promise((resolve) => setTimeout(resolve, 2));
      assert.deepEqual(closed, ["a"], "the engine still works for a request that is over");
      assert.deepEqual(finished, [kind === "first-token" ? "refused" : "aborted"]);
      assert.deepEqual([rig.router.inFlight, rig.router.openCharges, rig.router.strayInputs], [0, 0, 0]);
      assert.equal(rig.gateway.counters.internalErrors, 1);
      assert.equal(rig.summaries.length, 1);
      await rig.gateway.close(0);
      await Promise.all(rig.engines.map((engine) => engine.kill()));
    });
});
