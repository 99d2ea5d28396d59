import assert from "node:assert/strict";
import { test } from "node:test";
import { nameHash, randomFor } from "#core/base/random.ts";

test("a stream depends on its seed and its name alone", () => {
  const draws = (seed: number, stream: number) =>
    Array.from(
      { length: 8 },
      (
        (random) => () =>
          random.next()
      )(randomFor(seed, stream)),
    );
  assert.deepEqual(draws(1, 2), draws(1, 2));
  assert.notDeepEqual(draws(1, 2), draws(1, 3));
  assert.notDeepEqual(draws(1, 2), draws(2, 2));
  assert.notDeepEqual(draws(1, 2), draws(1 + 2 ** 40, 2), "all 53 bits of a seed count");
});

test("the first numbers of a stream never change: traces depend on them", () => {
  const random = randomFor(42, nameHash("router"));
  assert.deepEqual([random.below(1e9), random.below(1e9), random.below(1e9)], FIRST);
});

test("first draws of neighbouring streams are uniform and uncorrelated", () => {
  const count = 20_000;
  const first = Array.from({ length: count }, (_, i) => randomFor(9, i).next());
  const mean = first.reduce((sum, x) => sum + x, 0) / count;
  assert.ok(Math.abs(mean - 0.5) < 4 / Math.sqrt(12 * count), String(mean));
  let product = 0;
  for (let i = 1; i < count; i++) product += (first[i - 1]! - 0.5) * (first[i]! - 0.5);
  assert.ok(Math.abs(product / count) < 4 / (12 * Math.sqrt(count)), String(product / count));
  const buckets = Array.from({ length: 16 }, () => 0);
  for (const x of first) buckets[Math.floor(x * 16)]!++;
  const chi = buckets.reduce((sum, n) => sum + (n - count / 16) ** 2 / (count / 16), 0);
  assert.ok(chi < 45, `chi-square with 15 degrees of freedom: ${chi}`);
});

const FIRST = [652_022_269, 19_166_204, 504_074_167];
