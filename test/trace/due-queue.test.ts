import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { DueQueue } from "#trace/due-queue.ts";

describe("the queue of what is due", () => {
  it("gives the earliest first, equal times in the order of arrival, as a sorted list would", () => {
    const step = fc.oneof(fc.record({ push: fc.nat(20) }), fc.constant("pop" as const));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new DueQueue<number>();
        let list: { due: number; item: number }[] = [];
        for (const [item, one] of steps.entries()) {
          if (one === "pop") {
            assert.equal(queue.nextDue, list[0]?.due);
            assert.equal(queue.pop(), list[0]?.item);
            list = list.slice(1);
          } else {
            queue.push(one.push, item);
            list = [...list, { due: one.push, item }].sort((a, b) => a.due - b.due || a.item - b.item);
          }
          assert.equal(queue.size, list.length);
        }
      }),
    );
  });
});
