import assert from "node:assert/strict";
import { test } from "node:test";
import { ProcessWatch } from "#live/status/process-watch.ts";

test("a loop that is held is seen, with the processor that it takes", async (t) => {
  const watch = new ProcessWatch();
  t.after(() => watch.stop());
  watch.figures();
  const pass = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));
  // The watch counts from its first look on, a tenth of a second after it begins.
  await pass(300);
  const until = performance.now() + 400;
  while (performance.now() < until);
  await pass(700);
  const { cpu, loopHeldMillis, memoryBytes } = watch.figures();
  assert.ok(loopHeldMillis > 250, `${loopHeldMillis} ms`);
  assert.ok(cpu > 0 && cpu < 4, `${cpu}`);
  assert.ok(memoryBytes > 1e7);
  assert.deepEqual(watch.figures(), { cpu, loopHeldMillis, memoryBytes }, "who asks at once gets the same");
});

test("it watches for a minute after the last look; then the next one begins anew, and is of what comes after it", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const now = performance.now.bind(performance);
  let aheadMillis = 0;
  t.mock.method(performance, "now", () => now() + aheadMillis);
  const watch = new ProcessWatch();
  t.after(() => watch.stop());
  const work = () => {
    const until = now() + 20;
    while (now() < until);
    aheadMillis += 1_050;
  };
  watch.figures();
  work();
  t.mock.timers.tick(59_000);
  assert.ok(watch.figures().cpu > 0);
  work();
  t.mock.timers.tick(59_000);
  assert.ok(watch.figures().cpu > 0, "a look keeps it going");
  work();
  t.mock.timers.tick(61_000);
  assert.deepEqual({ ...watch.figures(), memoryBytes: 0 }, { cpu: 0, loopHeldMillis: 0, memoryBytes: 0 });
  work();
  assert.ok(watch.figures().cpu > 0);
});
