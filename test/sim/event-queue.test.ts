import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type EventPriority, EventQueue } from "#sim/event-queue.ts";

test("events come by time, then by priority, then in the order in which they were pushed, however pops fall between", () => {
  const step = fc.record({
    at: fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 0, max: 5 }) }, fc.constant(Infinity)),
    priority: fc.integer({ min: 1, max: 6 }),
    pops: fc.constantFrom(0, 0, 0, 1, 2),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const queue = new EventQueue<number>();
      const model: { at: number; priority: number; number: number }[] = [];
      const pop = () => {
        model.sort((a, b) => (a.at === b.at ? 0 : a.at - b.at) || a.priority - b.priority || a.number - b.number);
        assert.equal(queue.nextAt, model[0]?.at ?? Infinity);
        const first = model.shift();
        if (first !== undefined) assert.equal(queue.pop(), first.number);
      };
      steps.forEach(({ at, priority, pops }, number) => {
        queue.push(at, priority as EventPriority, number);
        model.push({ at, priority, number });
        for (let i = 0; i < pops; i++) pop();
      });
      while (model.length > 0) pop();
      assert.equal(queue.size, 0);
    }),
  );
});
