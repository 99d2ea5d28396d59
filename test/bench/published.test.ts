import assert from "node:assert/strict";
import { test } from "node:test";
import { LEFT_OUT_ERROR } from "#engine/achieved.ts";
import { FITTED } from "../../bench/published/constants.ts";
import { groupOf, predict } from "../../bench/published/fit.ts";
import { publishedRuns, SOURCES } from "../../bench/published/runs.ts";

test("predictions from a model's config are as near published runs as simulate states", () => {
  const runs = publishedRuns();
  assert.equal(runs.length, LEFT_OUT_ERROR.runs);
  assert.equal(new Set(runs.map(groupOf)).size, LEFT_OUT_ERROR.models);
  assert.ok(runs.every(({ source }) => SOURCES[source] !== undefined));
  const ones = FITTED.map(() => 1);
  const predicted = runs.map((run) => ({ run, ...predict(run, ones) }));
  const sorted = (ratios: readonly number[]) => ratios.map((ratio) => Math.abs(ratio - 1)).sort((a, b) => a - b);
  const tpot = sorted(predicted.map(({ run, tpotMillis }) => tpotMillis / run.tpotMillis));
  const ttft = sorted(
    predicted
      .filter(({ run }) => run.ttftMillis !== undefined && !run.saturated)
      .map(({ run, ttftMillis }) => ttftMillis / run.ttftMillis!),
  );
  for (const [name, errors, stated] of [
    ["TPOT", tpot, LEFT_OUT_ERROR.tpot],
    ["TTFT", ttft, LEFT_OUT_ERROR.ttft],
  ] as const) {
    const median = errors[errors.length >> 1]!;
    const ninety = errors[Math.floor(0.9 * errors.length)]!;
    assert.ok(median <= stated.median, `${name} median ${median}`);
    assert.ok(ninety <= stated.ninety + 0.005, `${name} 90 % ${ninety}`);
  }
});
