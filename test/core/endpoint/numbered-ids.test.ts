import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";

test("numbered ids stand in the order of their numbers, also as text, and are all different", () => {
  assert.deepEqual(numberedIds("endpoint", 1), ["endpoint_0"]);
  assert.deepEqual(numberedIds("instance", 11).slice(8), ["instance_08", "instance_09", "instance_10"]);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2_000 }), (count) => {
      const ids = numberedIds("endpoint", count);
      assert.equal(new Set(ids).size, count);
      assert.deepEqual(ids.toSorted(), ids);
    }),
  );
});
