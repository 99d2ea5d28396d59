import "../../property-seed.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { lossParts, type TokenLevels } from "#shadow/why/token-loss.ts";

const tokens = fc.nat({ max: 60 });
const LEVELS: fc.Arbitrary<TokenLevels> = fc
  .record({
    hit: tokens,
    more: tokens,
    chosenThen: tokens,
    chosenLater: tokens,
    believedChosen: tokens,
    elsewhere: tokens,
    knownElsewhere: tokens,
    offer: fc.constantFrom("candidate" as const, "absent" as const, "unrecorded" as const),
    everHere: tokens,
    everComputed: tokens,
    everSent: tokens,
  })
  .map(({ more, ...levels }) => ({ ...levels, possible: levels.hit + more }));

/** The levels of one prompt of 100 tokens that one engine held whole and nobody else. */
const HELD: TokenLevels = {
  possible: 100,
  hit: 0,
  chosenThen: 0,
  chosenLater: 0,
  believedChosen: 0,
  elsewhere: 100,
  knownElsewhere: 100,
  offer: "candidate",
  everHere: 100,
  everComputed: 100,
  everSent: 100,
};

test("what is lost adds up to what was possible less what was hit, whatever the levels, each reason once", () => {
  fc.assert(
    fc.property(LEVELS, (levels) => {
      const parts = lossParts(levels);
      const lost = parts.reduce((sum, part) => sum + part.tokens, 0);
      assert.equal(levels.hit + lost, levels.possible);
      assert.ok(parts.every((part) => part.tokens > 0));
      assert.equal(new Set(parts.map(({ loss }) => loss)).size, parts.length);
    }),
  );
});

test("no loss is called index or policy where nobody else held more", () => {
  fc.assert(
    fc.property(LEVELS, (levels) => {
      const parts = lossParts({ ...levels, elsewhere: 0 });
      assert.ok(parts.every(({ loss }) => loss !== "index" && loss !== "policy"));
    }),
  );
});

for (const [what, change, expected] of [
  ["the gateway knew it", {}, "policy"],
  ["the gateway did not know it", { knownElsewhere: 0 }, "index"],
  ["the gateway believed that the chosen one had it too", { believedChosen: 100 }, "index"],
  ["that one was out of service", { knownElsewhere: 0, offer: "absent" }, "gone"],
  ["the trace does not show what the gateway knew", { knownElsewhere: 0, offer: "unrecorded" }, "unexplained"],
  ["nobody holds it any more", { elsewhere: 0 }, "evicted"],
  ["nobody holds it any more though the gateway believed so", { elsewhere: 0, believedChosen: 100 }, "evicted"],
  ["the chosen one let it go while the request waited", { chosenThen: 100 }, "evicted"],
  ["the chosen one reported nothing of it", { chosenThen: 100, chosenLater: 100 }, "unexplained"],
  ["who computed it has left", { elsewhere: 0, everHere: 0 }, "gone"],
  ["somebody was still computing it", { elsewhere: 0, everHere: 0, everComputed: 0 }, "computing"],
  ["whoever asked for it was refused", { elsewhere: 0, everHere: 0, everComputed: 0, everSent: 0 }, "refused"],
] as const) {
  test(`a prompt that another engine held, where ${what}, is lost to ${expected}`, () => {
    assert.deepEqual(lossParts({ ...HELD, ...change }), [{ loss: expected, tokens: 100 }]);
  });
}
