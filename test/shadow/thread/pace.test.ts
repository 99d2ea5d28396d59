import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Pace } from "#shadow/thread/pace.ts";

/** A thread with a clock of its own, whose every piece of work takes what it says. */
function thread(share: number) {
  let cpu = 0;
  let wall = 0;
  const sleeps: number[] = [];
  const clock = {
    cpuMillis: () => cpu,
    wallMillis: () => wall,
    sleep: async (millis: number) => {
      sleeps.push(millis);
      wall += millis;
    },
  };
  const pace = new Pace(share, clock);
  const work = (cpuMillis: number, waitMillis: number) => {
    cpu += cpuMillis;
    wall += cpuMillis + waitMillis;
  };
  return { pace, work, sleeps, taken: () => ({ cpu, wall }) };
}

test("pieces of work take no more than their share of time, whatever they take each", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.double({ min: 0.05, max: 1, noNaN: true }),
      // All short, or of any length.
      fc.tuple(fc.constantFrom(0.5, 40), fc.constantFrom(0, 200)).chain(([cpuMax, waitMax]) =>
        fc.array(fc.tuple(fc.double({ min: 0.01, max: cpuMax, noNaN: true }), fc.integer({ min: 0, max: waitMax })), {
          minLength: 1,
          maxLength: 50,
        }),
      ),
      async (wanted, pieces) => {
        const { pace, work, taken } = thread(wanted);
        for (const [cpu, wait] of pieces) {
          work(cpu, wait);
          await pace.rest();
        }
        const { cpu, wall } = taken();
        // Less than a millisecond is not slept yet.
        assert.ok(cpu <= wanted * (wall + 1) + 1e-6, `${cpu} in ${wall} ms, at ${wanted}`);
      },
    ),
  );
});

test("a thread that waited for a core longer than its rest would be does not rest as well", async () => {
  const { pace, work, sleeps } = thread(0.25);
  work(10, 40);
  await pace.rest();
  assert.deepEqual(sleeps, []);
  work(10, 0);
  await pace.rest();
  assert.deepEqual(sleeps, [30]);
});

test("no rest is longer than a second, so that work gets on", async () => {
  const { pace, work, sleeps } = thread(0.01);
  work(500, 0);
  await pace.rest();
  assert.deepEqual(sleeps, [1000]);
});

test("time before the work began gives no credit", async () => {
  const { pace, work, sleeps } = thread(0.5);
  work(0, 10_000);
  pace.begin();
  work(20, 0);
  await pace.rest();
  assert.deepEqual(sleeps, [20]);
});

test("work that comes as one piece rests for as long as its share asks, of which a shorter rest makes more", async () => {
  const { pace, work, sleeps } = thread(0.1);
  work(500, 0);
  await pace.rest(Infinity);
  assert.deepEqual(sleeps, [4500]);
  work(500, 0);
  await pace.rest();
  assert.deepEqual(sleeps, [4500, 1000]);
});
