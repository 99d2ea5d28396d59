import assert from "node:assert/strict";
import { test } from "node:test";
import { unknownWord } from "#config/problem.ts";

const hint = (written: string, accepted: readonly string[]): string | undefined =>
  /did you mean (\w+)\?/.exec(unknownWord("key", written, accepted))?.[1];

test("the likeliest meaning of an unknown word is the one with the fewest letters changed, missing or too many", () => {
  const accepted = ["attemptsMax", "retryRatio", "retryBurst", "idleMillisMax"];
  for (const [written, meant] of [
    ["atemptsMax", "attemptsMax"],
    ["attempptsMax", "attemptsMax"],
    ["attenptsMax", "attemptsMax"],
    ["retryBurts", "retryBurst"],
    ["RETRYRATIO", "retryRatio"],
    ["idle", "idleMillisMax"],
  ] as const) {
    assert.equal(hint(written, accepted), meant, written);
  }
  assert.equal(hint("atemptMax", ["attemptsMax", "atemptABCx"]), "attemptsMax", "two missing, not three changed");
  assert.equal(hint("colour", accepted), undefined);
});

test("a word outside a short set is shown with the set, outside a long one without", () => {
  assert.match(unknownWord("kind", "xyzzy", ["a", "b"]), /^expected one of a, b, got the unknown kind "xyzzy"$/);
  const many = Array.from({ length: 200 }, (_, i) => `word${i}`);
  assert.match(
    unknownWord("profile", "zzzzzzzzz", many),
    /^expected a profile that exists, got the unknown profile "z+"$/,
  );
});
