import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { changedKeys } from "#serve/policy/changed-keys.ts";
import { mergePatch, patchBetween } from "#config/merge-patch.ts";

/** Mappings of few keys, so that two of them share some; lists are values. */
const DOCUMENT = fc.letrec<{ document: Record<string, unknown>; value: unknown }>((tie) => ({
  document: fc.dictionary(fc.constantFrom("a", "b", "c d"), tie("value"), { maxKeys: 3, noNullPrototype: true }),
  value: fc.oneof({ maxDepth: 3 }, fc.nat(2), fc.array(fc.nat(1), { maxLength: 2 }), tie("document")),
})).document;

test("the patch between two documents makes the second of the first, and is empty where they are the same", () => {
  fc.assert(
    fc.property(DOCUMENT, DOCUMENT, (before, after) => {
      assert.deepEqual(mergePatch(before, patchBetween(before, after)), after);
      assert.deepEqual(patchBetween(before, before), {});
      assert.deepEqual(changedKeys(before, before), []);
      assert.equal(changedKeys(before, after).length === 0, JSON.stringify(patchBetween(before, after)) === "{}");
    }),
  );
});

test("a source that changes its document leaves alone the keys that others changed", () => {
  fc.assert(
    fc.property(DOCUMENT, DOCUMENT, DOCUMENT, (before, after, inForce) => {
      const made = mergePatch(inForce, patchBetween(before, after)) as Record<string, unknown>;
      for (const key of ["a", "b", "c d"]) {
        const isSame = JSON.stringify(before[key]) === JSON.stringify(after[key]);
        const isPlain = [before, after].every((one) => typeof one[key] !== "object" || Array.isArray(one[key]));
        if (isSame) assert.deepEqual(made[key], inForce[key]);
        else if (isPlain) assert.deepEqual(made[key], after[key]);
      }
    }),
  );
});
