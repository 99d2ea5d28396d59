import assert from "node:assert/strict";
import { test } from "node:test";
import { ProcessWatch } from "#live/status/process-watch.ts";

test("a loop that is held is seen, with the processor that it takes", async (t) => {
  const watch = new ProcessWatch();
  t.after(() => watch.stop());
  watch.figures();
  const pass = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));
  await pass(100);
  const until = performance.now() + 400;
  while (performance.now() < until);
  await pass(700);
  const { cpu, loopHeldMillis, memoryBytes } = watch.figures();
  assert.ok(loopHeldMillis > 250, `${loopHeldMillis} ms`);
  assert.ok(cpu > 0 && cpu < 4, `${cpu}`);
  assert.ok(memoryBytes > 1e7);
  assert.deepEqual(watch.figures(), { cpu, loopHeldMillis, memoryBytes }, "who asks at once gets the same");
});
