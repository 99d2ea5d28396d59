import assert from "node:assert/strict";
import { test } from "node:test";
import { loadEngine } from "#config/engine-file.ts";
import { LEFT_OUT_ERROR } from "#engine/achieved.ts";
import { FITTED } from "../../bench/published/constants.ts";
import { groupOf, predict } from "../../bench/published/fit.ts";
import { replayed } from "../../bench/published/replay.ts";
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

test("the engines that come with gnomon are as near the published runs of them as their files state", () => {
  for (const [name, board, tpotMost, ttftMost] of [
    ["h100-llama-3.1-8b", "H100", 0.105, 0.085],
    ["a100-llama-3.1-8b", "A100-80", 0.035, 0.01],
  ] as const) {
    const own = publishedRuns().filter((run) => run.model === "llama-3.1-8b" && run.board === board && run.tp === 1);
    assert.ok(own.length >= 2);
    for (const run of own) {
      const { tpotMillis, ttftMillis } = replayed(run, loadEngine(name));
      assert.ok(Math.abs(tpotMillis / run.tpotMillis - 1) < tpotMost, `${name} ${run.run} TPOT ${tpotMillis}`);
      assert.ok(Math.abs(ttftMillis / run.ttftMillis! - 1) < ttftMost, `${name} ${run.run} TTFT ${ttftMillis}`);
    }
  }
});
