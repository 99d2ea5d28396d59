import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Heap } from "#core/base/heap.ts";

interface Item {
  readonly key: number;
  readonly order: number;
}

const precedes = (a: Item, b: Item): boolean => a.key < b.key || (a.key === b.key && a.order < b.order);
const byRank = (a: Item, b: Item): number => a.key - b.key || a.order - b.order;

test("property: a heap gives what a sorted list gives, whatever is pushed, shifted and removed in between", () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ push: fc.integer({ min: 0, max: 9 }) }) },
    { weight: 2, arbitrary: fc.constant("shift" as const) },
    { weight: 2, arbitrary: fc.record({ remove: fc.nat() }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const heap = new Heap<Item>(precedes);
      const list: Item[] = [];
      steps.forEach((one, order) => {
        if (one === "shift") {
          if (list.length > 0) assert.equal(heap.shift(), list.shift());
        } else if ("push" in one) {
          const item = { key: one.push, order };
          heap.push(item);
          list.push(item);
          list.sort(byRank);
        } else if (list.length > 0) {
          const [item] = list.splice(one.remove % list.length, 1);
          heap.remove(item!);
        }
        assert.equal(heap.size, list.length);
        assert.equal(heap.first, list[0]);
      });
      while (list.length > 0) assert.equal(heap.shift(), list.shift());
    }),
  );
});

test("an empty heap has no first, and taking from it or what it has not fails", () => {
  const heap = new Heap<Item>(precedes);
  assert.equal(heap.first, undefined);
  assert.throws(() => heap.shift(), /gives only what it has/);
  heap.push({ key: 1, order: 1 });
  assert.throws(() => heap.remove({ key: 1, order: 1 }), /gives only what it has/);
});
