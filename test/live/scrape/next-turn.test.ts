import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { nextTurn, phaseOf } from "#live/scrape/scrape.ts";

test("law: the next turn is later, on the grid, and at most an interval away", () => {
  fc.assert(
    fc.property(fc.nat(1e12), fc.integer({ min: 1, max: 1e9 }), fc.nat(), (at, interval, seed) => {
      const phase = seed % interval;
      const turn = nextTurn(at, interval, phase);
      assert.ok(turn > at && turn - at <= interval);
      assert.equal((turn - phase) % interval, 0);
    }),
  );
});

test("law: a fleet is scraped in so few groups that some eight servers are in each, all within the interval", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1_000, max: 1e7 }), (servers, interval) => {
      const groups = new Map<number, number>();
      for (let i = 0; i < servers; i++) {
        const phase = phaseOf(`http://10.0.${i >> 8}.${i & 255}:8000`, interval, servers);
        assert.ok(phase >= 0 && phase < interval);
        groups.set(phase, (groups.get(phase) ?? 0) + 1);
      }
      assert.ok(groups.size <= Math.ceil(servers / 8));
      assert.ok(Math.max(...groups.values()) <= 32, "never all of a large fleet at once");
    }),
    { numRuns: 200 },
  );
});
