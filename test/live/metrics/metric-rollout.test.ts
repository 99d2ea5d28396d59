import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import { registerRollouts } from "#live/metrics/metric-rollout.ts";
import type { RolloutView } from "#live/admin/rollout-view.ts";
import { rolloutViewCase } from "../rollout/rollout-view-case.ts";

async function page(rollouts: readonly RolloutView[]): Promise<{ text: string; asked: number }> {
  const registry = new Registry();
  let asked = 0;
  const view = () => {
    asked++;
    return { at: "", rollouts };
  };
  registerRollouts(registry, { rollouts: { view } });
  return { text: await registry.metrics(), asked };
}

test("a rollout's phase, arms, differences, guardrails and contradictions are numbers", async () => {
  const adjustment = { predicted: 90, unpredicted: 2, waiting: 5 };
  const { text, asked } = await page([rolloutViewCase({ adjustment })]);
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  assert.deepEqual(
    lines.map((line) => line.replace("gnomon_rollout_", "").replace('rollout="r",', "")),
    [
      'phase{phase="planned"} 0',
      'phase{phase="running"} 1',
      'phase{phase="paused"} 0',
      'phase{phase="promoted"} 0',
      'phase{phase="rolled-back"} 0',
      'arm_share_ratio{arm="a"} 0.5',
      'arm_share_ratio{arm="b"} 0.5',
      'requests_total{arm="a"} 100',
      'requests_total{arm="b"} 100',
      'failures_total{arm="a"} 2',
      'failures_total{arm="b"} 2',
      'difference_mean_seconds{arm="b",metric="ttft"} -0.02',
      'difference_low_seconds{arm="b",metric="ttft"} -0.025',
      'difference_high_seconds{arm="b",metric="ttft"} -0.015',
      'predictions_total{prediction="made"} 90',
      'predictions_total{prediction="none"} 2',
      'contradicted{arm="b",metric="ttft"} 0',
      'guardrail_used_ratio{arm="b",figure="error-rate"} 0.5',
    ],
  );
  assert.equal(asked, 1, "once a page");
});

test("many rollouts have lines only as far as there is room, and none without a admin", async () => {
  const many = Array.from({ length: 40 }, (_, i) => rolloutViewCase({ name: `r${i}` }));
  const { text } = await page(many);
  assert.equal(text.match(/gnomon_rollout_phase\{.*phase="running"\}/g)?.length, 8);
  const registry = new Registry();
  registerRollouts(registry, {});
  assert.doesNotMatch(await registry.metrics(), /gnomon_rollout_phase\{/);
});
