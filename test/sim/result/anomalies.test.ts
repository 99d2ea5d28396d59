import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Outcomes } from "#sim/result/outcomes.ts";
import { findAnomalies } from "#sim/result/anomalies.ts";
import { listed } from "../cluster.ts";

interface Given {
  readonly arrival: number;
  readonly wait: number;
  readonly service: number;
  readonly priority: number;
  readonly endpoint: number;
}

function outcomesOf(given: readonly Given[]): Outcomes {
  const outcomes = new Outcomes();
  given.forEach(({ arrival, wait, service, priority, endpoint }, i) => {
    const row = outcomes.open({ ...listed(i, arrival, 1, 1), engineHashes: () => new Int32Array(0) });
    outcomes.priority[row] = priority;
    outcomes.endpoint[row] = endpoint;
    outcomes.queueDelay[row] = wait;
    outcomes.e2e[row] = wait + service;
    outcomes.end(row, "completed");
  });
  outcomes.trim();
  return outcomes;
}

test("inversions and blocking are those that one finds by looking at every pair", () => {
  const one = fc.record({
    arrival: fc.integer({ min: 0, max: 40 }),
    wait: fc.integer({ min: 0, max: 20 }),
    service: fc.integer({ min: 1, max: 20 }),
    priority: fc.integer({ min: 0, max: 3 }),
    endpoint: fc.integer({ min: 0, max: 1 }),
  });
  fc.assert(
    fc.property(fc.array(one, { maxLength: 30 }), (given) => {
      const pairs = (of: Given) => given.filter((other) => other.endpoint === of.endpoint && other !== of);
      const inversions = given.filter((low) => {
        const at = low.arrival + low.wait;
        return pairs(low).some(
          (high) => high.priority < low.priority && high.arrival <= at && high.arrival + high.wait > at,
        );
      });
      const blocked = given.filter((high) =>
        pairs(high).some((low) => {
          const at = low.arrival + low.wait + low.service;
          return low.priority > high.priority && at >= high.arrival && at < high.arrival + high.wait;
        }),
      );
      assert.deepEqual(findAnomalies(outcomesOf(given)), {
        priorityInversions: inversions.length,
        holBlockingEvents: blocked.length,
      });
    }),
    { numRuns: 300 },
  );
});
