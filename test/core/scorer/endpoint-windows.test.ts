import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EndpointWindows, WindowSum } from "#core/scorer/window-sum.ts";

test("each endpoint has a sum of its own, of what is not older than the window", () => {
  const windows = new EndpointWindows(2);
  windows.add("a", 1_000_000, 5);
  windows.add("a", 2_500_000, 7);
  windows.add("b", 2_500_000, 11);
  assert.deepEqual(
    ["a", "b", "c"].map((id) => windows.sum(id, 3_000_000)),
    [12, 11, 0],
  );
  assert.deepEqual(
    ["a", "b", "c"].map((id) => windows.sum(id, 3_000_001)),
    [7, 11, 0],
  );
});

test("a forgotten endpoint starts from nothing, and the others keep theirs", () => {
  const windows = new EndpointWindows(10);
  windows.add("a", 0, 5);
  windows.add("b", 0, 6);
  windows.forget("a");
  assert.deepEqual([windows.sum("a", 1), windows.sum("b", 1)], [0, 6]);
});

test("a window's sum and count are those of the samples that are not older than it", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ later: fc.nat(40), sample: fc.nat(1_000) }), { maxLength: 200 }), (list) => {
      const window = new WindowSum(100);
      const samples: { at: number; sample: number }[] = [];
      let at = 0;
      for (const { later, sample } of list) {
        at += later;
        window.add(at, sample);
        samples.push({ at, sample });
        const inside = samples.filter((one) => at - one.at <= 100);
        assert.equal(window.count(at), inside.length);
        assert.equal(
          window.sum(at),
          inside.reduce((sum, one) => sum + one.sample, 0),
        );
      }
      assert.deepEqual([window.sum(at + 101), window.count(at + 101)], [0, 0]);
    }),
  );
});

test("of more samples than are kept the oldest go", () => {
  const window = new WindowSum(1_000_000);
  for (let at = 0; at < 20_000; at++) window.add(at, at);
  assert.equal(window.count(20_000), 16_384);
  assert.equal(window.sum(20_000), (16_384 * (20_000 - 16_384 + 19_999)) / 2);
});

test("the sums of candidates are those of each, wherever they stand and whoever was forgotten", () => {
  const ids = ["a", "b", "c", "d", "e"];
  const step = fc.record({
    kind: fc.constantFrom("add", "add", "forget"),
    id: fc.constantFrom(...ids),
    candidates: fc.shuffledSubarray(ids),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (list) => {
      const windows = new EndpointWindows(0.1);
      for (const [i, { kind, id, candidates }] of list.entries()) {
        const at = i * 9_000;
        if (kind === "add") windows.add(id, at, i + 1);
        else windows.forget(id);
        const sums = new Float64Array(candidates.length);
        const all = windows.sums(
          candidates.map((one) => ({ id: one, at })),
          sums,
        );
        assert.deepEqual(
          [...sums],
          candidates.map((one) => windows.sum(one, at)),
        );
        assert.equal(
          all,
          sums.reduce((sum, one) => sum + one, 0),
        );
      }
    }),
  );
});
