import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { nextTurn } from "#live/scrape/scrape.ts";

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
