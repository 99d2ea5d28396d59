import assert from "node:assert/strict";
import { test } from "node:test";
import { ENGINE_DEFAULTS, type EngineConfig } from "#engine/config.ts";
import { checkEngineConfig } from "#engine/config-check.ts";

function problemsOf(value: unknown): readonly string[] {
  return (checkEngineConfig(value).problems ?? []).map(({ path, message }) => `${path}: ${message}`);
}

test("nothing given is the defaults", () => {
  assert.deepEqual(checkEngineConfig({}).config, ENGINE_DEFAULTS);
});

test("what is written comes back", () => {
  const config: EngineConfig = {
    ...ENGINE_DEFAULTS,
    blockTokens: 32,
    scheduler: "sjf",
    stepTime: {
      kind: "roofline",
      tensorParallel: 2,
      model: { layers: 2, hidden: 8, heads: 2, kvHeads: 1, intermediate: 16, bytesPerParameter: 2, mlpMatrices: 3 },
      hardware: { tflopsPeak: 100, bandwidthTbs: 1, mfuPrefill: 0.5, mfuDecode: 0.3 },
    },
    tier: {
      cpuBlocks: 10,
      offloadThreshold: 0.5,
      transferBaseMicros: 1,
      blockBytes: 1024,
      bytesPerSecond: 1e9,
      thrashWindowMicros: 5,
    },
  };
  assert.deepEqual(checkEngineConfig(structuredClone(config)).config, config);
});

test("every problem is told, each with its path and what is accepted", () => {
  assert.deepEqual(problemsOf(7), [": must be an object"]);
  const problems = problemsOf({
    blockTokens: 0,
    kvBlocks: "many",
    scheduler: "lifo",
    blockSize: 16,
    stepGap: { baseMicros: -1 },
  });
  assert.deepEqual(problems.slice(0, 4), [
    "blockTokens: must be a whole number from 1 to 65536",
    "kvBlocks: must be a whole number from 2 to 16777216",
    "scheduler: must be one of fcfs, priority-fcfs, sjf",
    "stepGap.baseMicros: must be a number from 0 to 3600000000",
  ]);
  assert.match(problems[4] ?? "", /^blockSize: is unknown; known here: .*blockTokens, kvBlocks/);
});

test("a step time needs its own keys and knows no others", () => {
  assert.deepEqual(problemsOf({ stepTime: { kind: "magic" } }).slice(0, 1), [
    "stepTime.kind: must be one of coefficients, roofline, kernel-table, measured",
  ]);
  assert.deepEqual(problemsOf({ stepTime: { kind: "measured", stepMicros: [], extra: 1 } }), [
    "stepTime.stepMicros: must be a list of numbers, at least one",
    "stepTime.extra: is unknown; known here: kind, stepMicros",
  ]);
  const table = { kind: "kernel-table", layers: 1, layer: [[1, 2]], once: [[1]], perSequence: [[1, 1]], attention: [] };
  assert.deepEqual(problemsOf({ stepTime: table }), [
    "stepTime.once: must be a list of rows of 2 numbers, at least one row",
    "stepTime.attention: must be a list of rows of 5 numbers, at least one row",
  ]);
});

test("asynchronous scheduling goes with vLLM's semantics only", () => {
  const semantics = { completion: "last-step-start" };
  assert.deepEqual(problemsOf({ asyncScheduling: true, semantics }), [
    "asyncScheduling: goes with semantics.completion step-end and semantics.preempted keeps-tokens only",
  ]);
});
