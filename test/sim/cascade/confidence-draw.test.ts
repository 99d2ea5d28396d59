import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { confidenceDraw } from "#sim/cascade/confidence-draw.ts";

const DRAWS = 4_000;

function drawn(confidence: Parameters<typeof confidenceDraw>[0], tokens: number) {
  const values = Array.from({ length: DRAWS }, (_, i) => confidenceDraw(confidence, tokens, randomFor(11, i)));
  const mean = values.reduce((sum, value) => sum + value, 0) / DRAWS;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (DRAWS - 1);
  return { values, mean, deviation: Math.sqrt(variance) };
}

test("the mean of an answer's first tokens scatters as the answer does, and less about it the more tokens there are", () => {
  const confidence = { mean: -5, deviation: 0.3, tokenDeviation: 0.8 };
  for (const [tokens, expected] of [
    [4, Math.hypot(0.3, 0.4)],
    [64, Math.hypot(0.3, 0.1)],
  ] as const) {
    const { mean, deviation } = drawn(confidence, tokens);
    assert.ok(Math.abs(mean + 5) < 0.05, `mean ${mean}`);
    assert.ok(Math.abs(deviation / expected - 1) < 0.06, `deviation ${deviation} of ${tokens} tokens`);
  }
});

test("a log-probability is never above 0", () => {
  const { values } = drawn({ mean: -0.01, deviation: 0.5, tokenDeviation: 0 }, 8);
  assert.ok(Math.max(...values) === 0 && Math.min(...values) < -0.5);
});
