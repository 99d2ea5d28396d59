import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { type EngineSemantics, engineDefaults } from "#engine/config.ts";
import type { StepTimeSpec } from "#engine/step-time/create-step-time.ts";
import { type Act, chronicle, randomWorkload, type Workload } from "./random-workload.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

/** TEST_SEEDS runs more of them. */
const SEEDS = Number(process.env["TEST_SEEDS"] ?? 1000);

test("steps advanced together give what single steps give, to the microsecond", () => {
  let preemptions = 0;
  let hits = 0;
  for (const seed of drawnSeeds(SEEDS)) {
    const workload = randomWorkload(seed);
    const single = chronicle(workload, { coalesce: false });
    const together = chronicle(workload, { coalesce: true });
    assert.deepEqual(together, single, `seed ${seed}`);
    const last = JSON.parse(single.at(-1) ?? "{}") as { preemptions: number; prefixHitsTokens: number };
    preemptions += last.preemptions;
    hits += last.prefixHitsTokens;
  }
  assert.ok(preemptions > 100 && hits > 10_000, `the workloads preempt (${preemptions}) and share (${hits} tokens)`);
});

test("so do batches of a hundred and more, sync and ahead, with room and short of blocks", () => {
  for (const seed of drawnSeeds(8)) {
    const { config } = randomWorkload(seed);
    const random = randomFor(seed, 9);
    const acts = Array.from({ length: 260 }, (_, number): Act => {
      const promptTokens = 1 + random.below(40);
      const outputTokens = 1 + random.below(60);
      const known = Math.floor((promptTokens + (number % 3 === 0 ? outputTokens : 0)) / config.blockTokens);
      const hashes = Int32Array.from({ length: 2 * known }, (_word, i) => (i % 2 === 0 ? number % 50 : i));
      const deadlineAt = number % 40 === 7 ? 900 + number : undefined;
      const request = { promptTokens, outputTokens, hashes, priority: 0, deadlineAt, cacheRead: true };
      return { kind: "submit", at: 4 * number, request: { ...request, id: String(number) } };
    });
    acts.push({ kind: "look", at: 700 }, { kind: "abort", at: 800, id: "150" }, { kind: "look", at: 900 });
    acts.sort((a, b) => a.at - b.at);
    for (const [kvBlocks, asyncScheduling] of [
      [30_000, false],
      [30_000, true],
      [1_500, false],
      [1_500, true],
    ] as const) {
      const wide = { kvBlocks, asyncScheduling, sequencesMax: 200, modelTokensMax: 200, batchTokensMax: 300 };
      const workload = {
        config: { ...config, ...wide, chunkedPrefill: true, longPrefillTokens: 0, check: true },
        acts,
      };
      const single = chronicle(workload, { coalesce: false });
      assert.deepEqual(chronicle(workload, { coalesce: true }), single, `seed ${seed}, ${kvBlocks} blocks`);
    }
  }
});

test("the same workload gives the same chronicle", () => {
  for (const seed of drawnSeeds(50)) {
    assert.deepEqual(chronicle(randomWorkload(seed), {}), chronicle(randomWorkload(seed), {}), `seed ${seed}`);
  }
});

test("a waiting request is admitted in the step in which a member fills the block that it lacked", () => {
  const hashes = new Int32Array(Array.from({ length: 8 }, (_, word) => word));
  const request = { hashes, priority: 0, deadlineAt: undefined, cacheRead: true };
  const workload: Workload = {
    config: engineDefaults({
      blockTokens: 2,
      kvBlocks: 4,
      stepTime: {
        kind: "coefficients",
        baseMicros: 10,
        perPrefillTokenMicros: 0,
        perDecodeMicros: 0,
        perDecodeContextTokenMicros: 0,
        perPrefillPairMicros: 0,
      },
      check: true,
    }),
    acts: [
      { kind: "submit", at: 0, request: { ...request, id: "first", promptTokens: 3, outputTokens: 4 } },
      // Its prompt is what the first one's and two tokens of that answer are. Of three blocks it lacks two, one is free.
      { kind: "submit", at: 0, request: { ...request, id: "second", promptTokens: 5, outputTokens: 1 } },
    ],
  };
  const together = chronicle(workload, { coalesce: true, asyncScheduling: false });
  assert.deepEqual(together, chronicle(workload, { coalesce: false, asyncScheduling: false }));
  assert.ok(together.includes("10 admitted second 4"), together.join("\n"));
});

test("steps of a recorded run, and of requests that end as their last step starts, are never advanced together", () => {
  const stepMicros = Array.from({ length: 64 }, (_, step) => 5 + ((step * 7) % 11));
  const ways: readonly { readonly stepTime?: StepTimeSpec; readonly completion: EngineSemantics["completion"] }[] = [
    { stepTime: { kind: "measured", stepMicros }, completion: "step-end" },
    { completion: "last-step-start" },
  ];
  for (const seed of drawnSeeds(200)) {
    const workload = randomWorkload(seed);
    for (const { completion, ...way } of ways) {
      const overrides = { ...way, asyncScheduling: false, semantics: { ...workload.config.semantics, completion } };
      const single = chronicle(workload, { ...overrides, coalesce: false });
      assert.deepEqual(chronicle(workload, { ...overrides, coalesce: true }), single, `seed ${seed}, ${completion}`);
    }
  }
});
