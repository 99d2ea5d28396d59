import assert from "node:assert/strict";
import { test } from "node:test";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { nodeAt, schemaNode } from "#config/schema-node.ts";
import { STAGE_COUNTS, STAGE_SETTINGS, STAGES, newStageCounts, stageSettings } from "#core/stages.ts";
import { newPathCounts } from "#sim/result/path-counts.ts";
import { newCounters } from "#live/base/gateway-counters.ts";
import { DEFAULT_LIMITS } from "#live/http/limits.ts";
import { isAsking } from "#core/input/input.ts";
import { STAGE_ASKING, isStageInput } from "#core/request/stage-inputs.ts";

test("what a stage brings is in the configuration, the limits and both hosts' counts, and no two bring the same", () => {
  const keys = [...STAGE_SETTINGS, ...STAGE_COUNTS].map(([key]) => key);
  assert.equal(new Set(keys).size, keys.length);
  assert.equal(new Set(STAGES.map(({ name }) => name)).size, STAGES.length);
  const limits = nodeAt(schemaNode(CONFIG_SCHEMA), ["limits"])!.properties!;
  for (const [key, { usual, min, max, meaning }] of STAGE_SETTINGS) {
    const { default: byDefault, minimum, maximum, description } = limits[key]!;
    assert.deepEqual(
      { usual: byDefault, min: minimum, max: maximum, meaning: description },
      { usual, min, max, meaning },
      key,
    );
    assert.ok(Object.hasOwn(DEFAULT_LIMITS, key));
    assert.equal(stageSettings(DEFAULT_LIMITS)[key], usual);
  }
  const [counters, paths]: Record<string, unknown>[] = [{ ...newCounters() }, { ...newPathCounts() }];
  for (const [key, { label, row, total }] of STAGE_COUNTS) {
    const none = label === undefined ? 0 : {};
    assert.deepEqual([counters![key], newStageCounts()[key]], [none, none]);
    assert.deepEqual(paths![key], row === undefined ? undefined : total === undefined ? none : 0);
    if (label !== undefined) assert.notEqual(newCounters()[key], counters![key], "each gateway counts by itself");
  }
});

test("each input of a stage is known as one, and those that ask get a decision", () => {
  for (const kind of STAGE_ASKING) {
    const input = { kind } as Parameters<typeof isAsking>[0];
    assert.ok(isStageInput(input) && isAsking(input), kind);
  }
  assert.ok(!isStageInput({ kind: "first-token" }));
});
