import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { SCHEDULER_POLICIES } from "#engine/config.ts";
import { Sequence } from "#engine/sequence.ts";
import { createWaitQueue } from "#engine/wait-queue.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

function waiting(number: number, promptTokens: number, priority: number, submittedAt: number): Sequence {
  const sequence = new Sequence();
  const hashes = new Int32Array(0);
  const id = `request_${number}`;
  sequence.reset(
    { id, promptTokens, outputTokens: 1, hashes, priority, deadlineAt: undefined, cacheRead: true },
    number,
    submittedAt,
    submittedAt,
    1,
  );
  return sequence;
}

for (const policy of SCHEDULER_POLICIES) {
  test(`${policy} gives what sorting a list gives, under pushes, returns, removals`, () => {
    for (const seed of drawnSeeds(60)) {
      const random = randomFor(seed, 3);
      const queue = createWaitQueue(policy);
      let list: Sequence[] = [];
      const rank = (a: Sequence, b: Sequence) => {
        const key = policy === "sjf" ? "promptTokens" : "priority";
        const sign = policy === "reverse-priority" ? -1 : 1;
        const byKey = policy === "fcfs" ? 0 : sign * (a.request[key] - b.request[key]);
        const byTime = policy === "fcfs" ? 0 : a.submittedAt - b.submittedAt;
        const byId = policy === "fcfs" ? 0 : a.request.id < b.request.id ? -1 : 1;
        return byKey || byTime || byId;
      };
      for (let i = 0; i < 300; i++) {
        const action = random.below(5);
        if (action <= 1) {
          const sequence = waiting(i, 1 + random.below(5), random.below(3), random.below(10));
          queue.push(sequence);
          list.push(sequence);
        } else if (action === 2 && list.length > 0) {
          const sequence = queue.shift();
          assert.equal(sequence, list.shift(), `seed ${seed}`);
          if (random.below(2) > 0) {
            queue.pushPreempted(sequence);
            list.unshift(sequence);
          }
        } else if (action === 3 && list.length > 0) {
          const [sequence] = list.splice(random.below(list.length), 1) as [Sequence];
          queue.remove(sequence);
        }
        list = list.toSorted(rank);
        assert.equal(queue.size, list.length, `seed ${seed}`);
        if (list.length > 0) assert.equal(queue.peek(), list[0], `seed ${seed}`);
      }
    }
  });
}
