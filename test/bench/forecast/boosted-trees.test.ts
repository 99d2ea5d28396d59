import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { BoostedTrees } from "../../../bench/forecast/boosted-trees.ts";

const OPTIONS = {
  trees: 60,
  depth: 4,
  rate: 0.2,
  rows: 0.8,
  columns: 1,
  leafRowsMin: 3,
  gainMin: 0,
  l1: 0,
  l2: 0.1,
};

/** A step and a slope that holds on one side of another column; the third column is noise. */
const truth = ([a, b]: readonly number[]): number => (a! < 5 ? 10 : 40) + (b! < 0.5 ? 0 : 4 * a!);

function drawn(seed: number, count: number): number[][] {
  const random = randomFor(seed, 1);
  return Array.from({ length: count }, () => [10 * random.next(), random.next(), random.next()]);
}

test("boosted trees find steps and what holds for a part only, on rows that they have not seen", () => {
  const rows = drawn(1, 500);
  const model = new BoostedTrees(rows, rows.map(truth), OPTIONS, randomFor(2, 2));
  const errors = drawn(3, 100).map((row) => Math.abs(model.at(row) - truth(row)));
  const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
  assert.ok(mean < 1.5, `off by ${mean} of 10 to 80`);
});

test("they predict the mean where nothing distinguishes rows, and 0 where there is none", () => {
  const model = new BoostedTrees([[1], [1], [1], [1]], [2, 4, 6, 8], OPTIONS, randomFor(2, 2));
  assert.ok(Math.abs(model.at([1]) - 5) < 1.5);
  assert.equal(new BoostedTrees([], [], OPTIONS, randomFor(2, 2)).at([1]), 0);
});
