import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { findJsonFault } from "#emulator/http/json-error.ts";

/** What Python 3.11's decoder says of each text. */
const KNOWN: readonly (readonly [string, string, number])[] = [
  ['{"model":"tiny",', "Expecting property name enclosed in double quotes", 16],
  ["{", "Expecting property name enclosed in double quotes", 1],
  ["{'a':1}", "Expecting property name enclosed in double quotes", 1],
  ['{"a" 1}', "Expecting ':' delimiter", 5],
  ['{"a":}', "Expecting value", 5],
  ['{"a":1 "b":2}', "Expecting ',' delimiter", 7],
  ["[1,]", "Expecting value", 3],
  ["[1 2]", "Expecting ',' delimiter", 3],
  ['{"a":"b', "Unterminated string starting at", 5],
  ['"\\x"', "Invalid \\escape", 1],
  ['"a\nb"', "Invalid control character at", 2],
  ["{} x", "Extra data", 3],
  ["", "Expecting value", 0],
  ["nul", "Expecting value", 0],
];

test("errors are found where Python's decoder finds them", () => {
  for (const [text, reason, at] of KNOWN) assert.deepEqual(findJsonFault(text), { at, reason }, text);
});

test("whatever JSON.parse refuses has a fault within the text", () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), fc.string({ maxLength: 2 }), (json, place, noise) => {
      const at = place % (json.length + 1);
      const text = json.slice(0, at) + noise + json.slice(at + 1);
      try {
        JSON.parse(text);
      } catch {
        const fault = findJsonFault(text);
        assert.ok(fault.at >= 0 && fault.at <= text.length);
        assert.notEqual(fault.reason, "");
      }
    }),
  );
});
