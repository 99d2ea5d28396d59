import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptWatch } from "#live/upstream/attempt-watch.ts";
import { WorkerSigns } from "#live/worker/worker-signs.ts";

test("signs of the thread that decides pass on to the judge as they are", () => {
  const got: unknown[] = [];
  const judge: AttemptWatch = {
    isHung: (endpoint) => endpoint === "hung",
    answered: (...given) => got.push(["answered", ...given]),
    took: (...given) => got.push(["took", ...given]),
    waits: (...given) => got.push(["waits", ...given]),
    sweepBegins: () => got.push(["begins"]),
    sweepEnds: () => got.push(["ends"]),
  };
  const signs = new WorkerSigns(judge);
  signs.answered("a", 7);
  signs.took("a", "stream", 9);
  signs.sweepBegins();
  signs.waits("b", "stream", 3);
  signs.sweepEnds();
  assert.deepEqual(got, [
    ["answered", "a", 7],
    ["took", "a", "stream", 9],
    ["begins"],
    ["waits", "b", "stream", 3],
    ["ends"],
  ]);
  assert.deepEqual([signs.isHung("hung"), signs.isHung("well")], [true, false]);
});
