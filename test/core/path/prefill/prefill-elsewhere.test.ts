import assert from "node:assert/strict";
import { test } from "node:test";

import fc from "fast-check";

import type { Routed } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import { PrefillElsewhere } from "#core/path/prefill/prefill-elsewhere.ts";

function elsewhere(handoff: "prefill-first" | "together") {
  const log: string[] = [];
  const router = { accept: (input: Input) => log.push(input.kind) } as unknown as PathRouter;
  const prefill = { endpoint: "p", handoff, hitTokens: 0 } as unknown as NonNullable<Routed["prefill"]>;
  const routed = { kind: "routed", endpoint: "d", prefill } as Routed;
  const stage = new PrefillElsewhere(routed, prefill, {
    router,
    routeId: "r",
    now: () => 5,
    dispatch: ({ kind }) => {
      log.push(kind);
      // As the path does, which reports it then.
      stage.aheadDone();
    },
    strand: (by) => log.push(`strand ${by ?? "nobody"}`),
  });
  return { stage, log };
}

test("the request is with one endpoint and then with the other, and whoever has it fails", () => {
  const { stage, log } = elsewhere("prefill-first");
  assert.deepEqual([stage.endpoint, stage.failed, stage.isTogether], ["p", "prefill", false]);
  stage.notFetched();
  assert.equal(stage.failed, "prefill", "nobody was to fetch anything");
  stage.prefilled(32, true);
  stage.sentOn();
  assert.deepEqual([stage.endpoint, stage.failed, stage.cachedTokens], ["d", "answer", 32]);
  stage.notFetched();
  assert.equal(stage.failed, "transfer");
  assert.deepEqual(log, ["ahead-done", "prefill-finished"]);
});

test("who has both at once reports without a step of the path, and names the one beside where that fails", () => {
  const { stage, log } = elsewhere("together");
  stage.sentOn();
  stage.prefilled(undefined, false);
  assert.deepEqual(log, ["prefill-finished"]);
  stage.prefillFailed();
  assert.deepEqual([stage.endpoint, stage.failed], ["d", "prefill"]);
});

test("blocks that wait are given up once, unless they were fetched", () => {
  const STEPS = ["computed", "computed-none", "token", "move", "ok", "failed"] as const;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...STEPS), { maxLength: 12 }), (steps) => {
      const { stage, log } = elsewhere("prefill-first");
      let waits = false;
      let expected = 0;
      for (const step of steps) {
        if (step === "computed" || step === "computed-none") stage.prefilled(0, (waits = step === "computed"));
        else if (step === "token") stage.firstToken();
        else if (step === "move") stage.close("x");
        else stage.ended(step);
        if (step === "move" || step === "failed") expected += Number(waits);
        if (!step.startsWith("computed")) waits = false;
        assert.equal(stage.waits, waits);
      }
      assert.equal(log.filter((line) => line.startsWith("strand")).length, expected);
    }),
  );
});
