import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { DISTRIBUTION, draw, gamma } from "#trace/import/distribution.ts";
import { exponential } from "#trace/import/exponential.ts";
import { exp, ln, portablePower } from "#trace/import/portable-math.ts";

const DRAWS = 40_000;

function moments(next: () => number): { mean: number; deviation: number } {
  let [sum, squares] = [0, 0];
  for (let i = 0; i < DRAWS; i++) {
    const value = next();
    sum += value;
    squares += value * value;
  }
  const mean = sum / DRAWS;
  return { mean, deviation: Math.sqrt(squares / DRAWS - mean * mean) };
}

describe("distributions", () => {
  // Mean and deviation of each; the error of a mean of 40,000 draws is deviation / 200.
  const known: [object | number, number, number][] = [
    [7, 7, 0],
    [{ distribution: "uniform", min: 2, max: 8 }, 5, 6 / Math.sqrt(12)],
    [{ distribution: "exponential", mean: 30 }, 30, 30],
    [{ distribution: "normal", mean: 100, stddev: 10 }, 100, 10],
    [
      { distribution: "lognormal", median: 50, sigma: 0.5 },
      50 * Math.exp(0.125),
      50 * Math.exp(0.125) * Math.sqrt(Math.exp(0.25) - 1),
    ],
    [{ distribution: "geometric", mean: 4 }, 4, Math.sqrt(0.75) * 4],
    [{ distribution: "empirical", values: [1, 2, 9] }, 4, Math.sqrt(86 / 3 - 16)],
  ];
  for (const [written, mean, deviation] of known)
    it(`has the moments of ${JSON.stringify(written)}`, () => {
      const random = randomFor(3, 5);
      const distribution = DISTRIBUTION.parse(written);
      const found = moments(() => draw(distribution, random));
      assert.ok(Math.abs(found.mean - mean) <= (5 * deviation) / Math.sqrt(DRAWS) + 1e-9, `mean ${found.mean}`);
      assert.ok(Math.abs(found.deviation - deviation) <= 0.05 * deviation + 1e-6, `deviation ${found.deviation}`);
    });

  it("sets draws outside the bounds to the bound", () => {
    const random = randomFor(3, 6);
    const distribution = DISTRIBUTION.parse({ distribution: "normal", mean: 10, stddev: 50, min: 5, max: 20 });
    const values = new Set(Array.from({ length: 200 }, () => draw(distribution, random)));
    assert.ok([...values].every((value) => value >= 5 && value <= 20) && values.has(5) && values.has(20));
  });

  for (const shape of [0.2, 1, 6])
    it(`gamma of shape ${shape} has mean 1 and deviation 1 / sqrt(shape)`, () => {
      const random = randomFor(1, 2);
      const { mean, deviation } = moments(() => gamma(shape, random));
      assert.ok(Math.abs(mean - 1) < 5 / Math.sqrt(shape * DRAWS));
      assert.ok(Math.abs(deviation * Math.sqrt(shape) - 1) < 0.06);
    });

  it("exponential draws exceed t with probability e^-t", () => {
    const random = randomFor(9, 9);
    const values = Array.from({ length: DRAWS }, () => exponential(random));
    for (const t of [0.1, 0.5, 1, 2, 4]) {
      const expected = Math.exp(-t);
      const share = values.filter((value) => value > t).length / DRAWS;
      assert.ok(Math.abs(share - expected) < 5 * Math.sqrt(expected / DRAWS), `P(> ${t}) = ${share}`);
    }
  });
});

describe("portable logarithm and exponential", () => {
  const close = (found: number, expected: number) => Math.abs(found - expected) <= 1e-14 * Math.abs(expected) + 1e-16;

  it("agree with Math over their whole range", () => {
    const random = randomFor(4, 4);
    for (let i = 0; i < 5_000; i++) {
      const x = (random.next() - 0.5) * 1_400;
      assert.ok(close(exp(x), Math.exp(x)), `exp(${x})`);
      const y = Math.exp((random.next() - 0.5) * 200);
      assert.ok(close(ln(y), Math.log(y)), `ln(${y})`);
      assert.ok(Math.abs(portablePower(y, 0.3) / y ** 0.3 - 1) < 1e-13, `power(${y})`);
    }
    assert.equal(exp(0), 1);
    assert.equal(ln(1), 0);
  });
});
