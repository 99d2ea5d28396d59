import assert from "node:assert/strict";
import { test } from "node:test";
import { outputPredictor } from "#core/tenant/output-predictor.ts";

const asked = (tenant: string, promptTokens = 10, sequences = 1) => ({ tenant, promptTokens, sequences });

test("by ratio an answer has 1.5 times its prompt's tokens, rounded up, whatever was answered before", () => {
  const prediction = outputPredictor("ratio");
  assert.deepEqual(
    [10, 11, 0].map((tokens) => prediction.predict(asked("a", tokens))),
    [15, 17, 0],
  );
  for (let i = 0; i < 20; i++) prediction.learn(asked("a"), 1_000_000 * i, 400);
  assert.equal(prediction.predict(asked("a")), 15);
});

test("observed is each tenant's own moving mean, the ratio before its first answer", () => {
  const prediction = outputPredictor("observed");
  assert.equal(prediction.predict(asked("a")), 15);
  prediction.learn(asked("a"), 0, 400);
  assert.deepEqual([prediction.predict(asked("a")), prediction.predict(asked("b"))], [400, 15]);
  prediction.learn(asked("a"), 1_000_000, 100);
  const mean = prediction.predict(asked("a"));
  assert.ok(mean > 100 && mean < 400, `${mean} lies between what was seen`);
});

test("what several answers had together is the length of none of them, and as many are expected as are asked for", () => {
  const prediction = outputPredictor("observed");
  prediction.learn(asked("a", 10, 4), 0, 400);
  assert.deepEqual([prediction.predict(asked("a")), prediction.predict(asked("a", 10, 3))], [100, 300]);
});
