import assert from "node:assert/strict";
import { test } from "node:test";
import { LeastSquares } from "#core/latency/latency-model.ts";
import { randomFor } from "#core/base/random.ts";

const PRIORS = [1, 1, 1].map((weight) => ({ value: 0, weight: weight / 1_000 }));

function close(actual: readonly number[], expected: readonly number[], within: number): void {
  assert.equal(actual.length, expected.length);
  expected.forEach((value, i) => {
    assert.ok(Math.abs(actual[i]! - value) <= within, `coefficient ${i} is ${actual[i]}, not ${value}`);
  });
}

test("finds the coefficients that its samples were made of", () => {
  const random = randomFor(1, 2);
  const model = new LeastSquares(PRIORS, 1);
  for (let i = 0; i < 200; i++) {
    const features = [1, random.next() * 10, random.next() * 5];
    model.add(features, 7 + 2 * features[1]! + 0.5 * features[2]!);
  }
  close(model.coefficients, [7, 2, 0.5], 0.01);
  assert.ok(Math.abs(model.at([1, 3, 4]) - 15) < 0.02);
});

test("forgets what held before", () => {
  const random = randomFor(3, 4);
  const model = new LeastSquares(PRIORS, 0.98);
  for (const slope of [2, 5]) {
    for (let i = 0; i < 600; i++) {
      const features = [1, random.next() * 10, random.next()];
      model.add(features, 1 + slope * features[1]!);
    }
  }
  close(model.coefficients, [1, 5, 0], 0.05);
});

test("a feature that never varies leaves the model bounded, and one surprise does not turn it", () => {
  const model = new LeastSquares(PRIORS, 0.99);
  for (let i = 0; i < 20_000; i++) model.add([1, 4, 0], 10);
  assert.ok(Math.abs(model.at([1, 4, 0]) - 10) < 0.01);
  model.add([1, 4, 1], 12);
  assert.ok(
    model.coefficients.every((value) => Math.abs(value) < 20),
    String(model.coefficients),
  );
});

test("the prior stands until there is evidence", () => {
  const model = new LeastSquares([{ value: 40, weight: 1_000 }], 1);
  assert.equal(model.at([3]), 120);
  model.add([1], 80);
  assert.ok(model.coefficients[0]! > 40 && model.coefficients[0]! < 41);
});
