import assert from "node:assert/strict";
import { test } from "node:test";
import { outputPredictor } from "#core/tenant/output-predictor.ts";

test("by ratio an answer has 1.5 times its prompt's tokens, rounded up, whatever was answered before", () => {
  const prediction = outputPredictor("ratio");
  assert.deepEqual(
    [10, 11, 0].map((tokens) => prediction.predict("a", tokens)),
    [15, 17, 0],
  );
  for (let i = 0; i < 20; i++) prediction.learn("a", 1_000_000 * i, 400);
  assert.equal(prediction.predict("a", 10), 15);
});

test("observed is each tenant's own moving mean, the ratio before its first answer", () => {
  const prediction = outputPredictor("observed");
  assert.equal(prediction.predict("a", 10), 15);
  prediction.learn("a", 0, 400);
  assert.deepEqual([prediction.predict("a", 10), prediction.predict("b", 10)], [400, 15]);
  prediction.learn("a", 1_000_000, 100);
  const mean = prediction.predict("a", 10);
  assert.ok(mean > 100 && mean < 400, `${mean} lies between what was seen`);
});
