import assert from "node:assert/strict";
import { test } from "node:test";
import { OwedText } from "#live/continuation/continued-answer.ts";

test("a stop string that begins in one engine's text and ends in the next one's ends the answer before it", () => {
  const owed = new OwedText("abcE", ["END", "#"]);
  assert.deepEqual(owed.add("", undefined), { text: "ab", stop: undefined }, "held back as far as one may begin there");
  assert.deepEqual(owed.add("ND rest", undefined), { text: "c", stop: "END", used: 2 });
});

test("of two the one that ends first counts", () => {
  const owed = new OwedText("ab", ["bcdef", "bc"]);
  assert.deepEqual(owed.add("cdefg", undefined), { text: "a", stop: "bc", used: 1 });
});

test("one that lies in the next engine's text alone is that engine's to report", () => {
  const owed = new OwedText("ab", ["xyz"]);
  assert.deepEqual(owed.add("", undefined), { text: "", stop: undefined });
  assert.deepEqual(owed.add("cd", undefined), { text: "ab", stop: undefined });
  assert.deepEqual(owed.add("xyz", undefined), { text: "cdx", stop: undefined });
  assert.deepEqual(owed.add("", { stop: undefined }), { text: "yz", stop: undefined }, "all of it at the end");
  const reported = new OwedText("ab", ["xyz"]);
  assert.deepEqual(reported.add("cdxyz", { stop: "xyz" }), { text: "abcd", stop: "xyz" });
});

test("a character of two units is not shown in halves", () => {
  const owed = new OwedText("", ["wxyz"]);
  const shown = Array.from("a\u{1F600}b\u{1F600}cdefg").map((character) => owed.add(character, undefined).text);
  shown.push(owed.add("", { stop: undefined }).text);
  assert.ok(
    shown.every((text) => text.isWellFormed()),
    JSON.stringify(shown),
  );
  assert.equal(shown.join(""), "a\u{1F600}b\u{1F600}cdefg");
});
