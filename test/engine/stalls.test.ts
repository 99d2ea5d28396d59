import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { stalledMicros, type StepDrift } from "#engine/step-drift.ts";
import { chronicle, randomWorkload } from "./random-workload.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

const drift = (stalls: readonly (readonly [at: number, micros: number])[], span = 1000): StepDrift => ({
  windowMicros: span,
  factors: Float64Array.of(1),
  stalls: { at: Float64Array.from(stalls, ([at]) => at), micros: Float64Array.from(stalls, ([, micros]) => micros) },
});

test("a stall lengthens the step that it comes in, the rest of it one that begins in it, and no other", () => {
  const stalls = drift([
    [100, 50],
    [400, 10],
  ]);
  for (const [at, micros, extra] of [
    [0, 100, 0],
    [0, 101, 50],
    [100, 20, 50],
    [120, 20, 30],
    [149, 20, 1],
    [150, 20, 0],
    [0, 500, 60],
    // Longer by the first, the step lasts into the second.
    [90, 270, 60],
    [1100, 20, 50],
  ] as const)
    assert.equal(stalledMicros(stalls, at, micros), extra, `${at} for ${micros}`);
});

test("steps that stall, advanced together, give what single steps give, to the microsecond", () => {
  let moved = 0;
  for (const seed of drawnSeeds(300)) {
    const random = randomFor(seed, 3);
    const stalls = [100, 300, 700].map((at) => [at + random.below(100), 1 + random.below(99)] as const);
    const stepDrift = drift(stalls, 1000);
    const workload = randomWorkload(seed);
    const single = chronicle(workload, { coalesce: false, stepDrift });
    assert.deepEqual(chronicle(workload, { coalesce: true, stepDrift }), single, `seed ${seed}`);
    if (JSON.stringify(single) !== JSON.stringify(chronicle(workload, { coalesce: false }))) moved++;
  }
  assert.ok(moved > 200, `stalls change times (${moved} of 300)`);
});
