import "../../property-seed.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GoldenSearch } from "#shadow/why/golden-search.ts";

const TRIES = 20;
/** What a golden section leaves of it each time. */
const SECTION = 0.6181;

test("of a function of one valley the least is found, closer by a golden section a try, ends included", () => {
  const inputs = [fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0.1, max: 10, noNaN: true })] as const;
  fc.assert(
    fc.property(...inputs, (share, width) => {
      const [low, high] = [-1, -1 + width];
      const least = low + share * width;
      const search = new GoldenSearch(low, high);
      let closest = Infinity;
      for (let tries = 0; tries < TRIES; tries++) {
        const at = search.next;
        assert.ok(at >= low && at <= high);
        search.take(Math.abs(at - least));
        closest = Math.min(closest, Math.abs(at - least));
      }
      assert.ok(closest <= width * SECTION ** (TRIES - 2), `${closest} of ${width}`);
    }),
  );
});
