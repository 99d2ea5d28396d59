import assert from "node:assert/strict";
import { test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { StepDrift } from "#engine/step-drift.ts";
import { randomFor } from "#core/base/random.ts";
import { chronicle, randomWorkload } from "./random-workload.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

test("steps that drift, advanced together, give what single steps give, to the microsecond", () => {
  let moved = 0;
  for (const seed of drawnSeeds(400)) {
    const random = randomFor(seed, 2);
    const factors = Float64Array.from({ length: 1 + random.below(7) }, () => 0.5 + 2 * random.next());
    const stepDrift: StepDrift = { windowMicros: 1 + random.below(200), factors };
    const workload = randomWorkload(seed);
    const single = chronicle(workload, { coalesce: false, stepDrift });
    assert.deepEqual(chronicle(workload, { coalesce: true, stepDrift }), single, `seed ${seed}`);
    if (JSON.stringify(single) !== JSON.stringify(chronicle(workload, { coalesce: false }))) moved++;
  }
  assert.ok(moved > 300, `drift changes times (${moved} of 400)`);
});

test("a factor of 1 changes nothing", () => {
  const stepDrift = { windowMicros: 7, factors: Float64Array.of(1, 1, 1) };
  for (const seed of drawnSeeds(100))
    assert.deepEqual(chronicle(randomWorkload(seed), { stepDrift }), chronicle(randomWorkload(seed), {}));
});

test("a step takes the factor of the window in which it starts, round and round", () => {
  const stepTime = { kind: "coefficients", baseMicros: 100, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;
  const stepDrift = { windowMicros: 250, factors: Float64Array.of(1, 3) };
  const tokens: number[] = [];
  const config = engineDefaults({ stepTime, stepDrift, coalesce: false });
  const engine = new Engine(config, { token: (at) => tokens.push(at), finished: () => undefined });
  const outputTokens = 6;
  engine.submit(0, {
    id: "a",
    promptTokens: 4,
    outputTokens,
    hashes: new Int32Array(0),
    priority: 0,
    deadlineAt: undefined,
    cacheRead: true,
  });
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  // Starts at 0, 100, 200 (first window), 300 (second), 600 and 700 (the first again).
  assert.deepEqual(tokens, [100, 200, 300, 600, 700, 800]);
});
