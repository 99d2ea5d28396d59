import assert from "node:assert/strict";
import { test } from "node:test";
import { loadEngine } from "#config/engine-file.ts";
import { LEFT_OUT_ERROR } from "#engine/achieved.ts";
import { groupOf, knownTo, predict } from "../../bench/published/fit.ts";
import type { Form } from "../../bench/published/form.ts";
import { handedOver, handoverRuns } from "../../bench/published/handovers.ts";
import { KERNEL_ROOFLINE } from "../../bench/published/kernel-roofline-form.ts";
import { type Predicted, replayed } from "../../bench/published/replay.ts";
import { type PublishedRun, publishedRuns, SOURCES } from "../../bench/published/runs.ts";
import { TRAINED_PHYSICS, TRAINED_PHYSICS_BLIS } from "../../bench/published/trained-physics-form.ts";

const RUNS = publishedRuns();
/** Each prediction is made once. */
const predictions = new Map<Form, Map<PublishedRun, Predicted>>();
function asItIs(form: Form, run: PublishedRun): Predicted {
  const of = predictions.get(form) ?? new Map<PublishedRun, Predicted>();
  predictions.set(form, of);
  const ones = form.fitted.map(() => 1);
  const predicted = of.get(run) ?? predict(form, run, ones)!;
  of.set(run, predicted);
  return predicted;
}
const sorted = (ratios: readonly number[]) => ratios.map((ratio) => Math.abs(ratio - 1)).sort((a, b) => a - b);
const tpotErrors = (form: Form, runs: readonly PublishedRun[]) =>
  sorted(runs.map((run) => asItIs(form, run).tpotMillis / run.tpotMillis));

test("predictions from a model's config are as near published runs as simulate states", () => {
  const runs = RUNS;
  assert.equal(runs.length, LEFT_OUT_ERROR.runs);
  assert.equal(new Set(runs.map(groupOf)).size, LEFT_OUT_ERROR.models);
  assert.ok(runs.every(({ source }) => SOURCES[source] !== undefined));
  const predicted = runs.map((run) => ({ run, ...asItIs(KERNEL_ROOFLINE, run) }));
  const tpot = tpotErrors(KERNEL_ROOFLINE, runs);
  assert.ok(tpot.at(-1)! <= 0.25, `one run is ${tpot.at(-1)} off`);
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

test("the formula that simulate uses is nearer to published runs than the others", () => {
  const all = RUNS;
  const runs = knownTo(TRAINED_PHYSICS, all);
  assert.deepEqual(
    all.filter((run) => !runs.includes(run)).map(({ model }) => model),
    ["deepseek-r1-awq", "deepseek-r1-awq", "deepseek-r1-fp8"],
  );
  const at = (form: Form, share: number) => tpotErrors(form, runs)[Math.floor(share * runs.length)]!;
  for (const share of [0.5, 0.9]) assert.ok(at(KERNEL_ROOFLINE, share) < at(TRAINED_PHYSICS_BLIS, share));
});

test("engines that hand prompts over are as near published runs, and on several boards by the connector's wait alone", () => {
  const runs = handoverRuns();
  assert.ok(new Set(runs.map(({ group }) => group)).size >= 3);
  for (const run of runs) {
    const off = handedOver(run).tpotMillis / run.tpotMillis - 1;
    assert.ok(Math.abs(off) < 0.09, `${run.source} ${off}`);
    const bare = handedOver(run, 0).tpotMillis / run.tpotMillis - 1;
    assert.ok(run.tp > 1 ? bare < -0.19 : bare === off, `${run.source} ${bare}`);
  }
});

test("the engines that come with gnomon are as near the published runs of them as their files state", () => {
  for (const [name, board, tpotMost, ttftMost] of [
    ["h100-llama-3.1-8b", "H100", 0.105, 0.085],
    ["a100-llama-3.1-8b", "A100-80", 0.035, 0.01],
  ] as const) {
    const own = RUNS.filter((run) => run.model === "llama-3.1-8b" && run.board === board && run.tp === 1);
    assert.ok(own.length >= 2);
    for (const run of own) {
      const { tpotMillis, ttftMillis } = replayed(run, loadEngine(name));
      assert.ok(Math.abs(tpotMillis / run.tpotMillis - 1) < tpotMost, `${name} ${run.run} TPOT ${tpotMillis}`);
      assert.ok(Math.abs(ttftMillis / run.ttftMillis! - 1) < ttftMost, `${name} ${run.run} TTFT ${ttftMillis}`);
    }
  }
});
