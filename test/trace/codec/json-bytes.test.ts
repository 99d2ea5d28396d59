import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JsonBytes } from "#trace/codec/json-bytes.ts";

const written = (write: (to: JsonBytes) => void): string => {
  const to = new JsonBytes();
  write(to);
  return to.taken().toString();
};

test("a number is as JSON has it, minus zero included, and what JSON lacks is refused", () => {
  const powers = fc.tuple(fc.integer({ min: 0, max: 53 }), fc.integer({ min: -1, max: 1 }), fc.constantFrom(1, -1));
  const numbers = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.maxSafeInteger(),
    fc.integer(),
    powers.map(([power, beside, sign]) => sign * (2 ** power + beside)),
    fc.integer({ min: 0, max: 16 }).map((power) => 10 ** power - 1),
    fc.integer({ min: 0, max: 22 }).map((power) => 10 ** power),
  );
  fc.assert(
    fc.property(numbers, (value) => {
      const text = written((to) => to.number(value));
      assert.equal(text, Object.is(value, -0) ? "-0" : JSON.stringify(value));
    }),
    { numRuns: 2_000 },
  );
  for (const value of [NaN, Infinity, -Infinity]) assert.throws(() => new JsonBytes().number(value), RangeError);
});

test("a string is as JSON has it, whatever it holds", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) }), (value) => {
      assert.equal(
        written((to) => to.text(value)),
        Buffer.from(JSON.stringify(value)).toString(),
      );
    }),
  );
  fc.assert(
    fc.property(fc.string({ unit: "binary-ascii", maxLength: 200 }), (value) => {
      assert.equal(
        written((to) => to.text(value)),
        JSON.stringify(value),
      );
    }),
  );
});

test("what is longer than the buffer is written whole, and nothing is left of what was cut or taken", () => {
  const to = new JsonBytes();
  const pieces = ["a".repeat(70_000), "b", "c".repeat(300_000)];
  for (const piece of pieces) to.ascii(piece);
  to.text("é".repeat(100_000));
  assert.equal(to.taken().toString(), `${pieces.join("")}${JSON.stringify("é".repeat(100_000))}`);
  assert.equal(to.length, 0);
  to.ascii("kept");
  to.text("cut");
  to.cut(4);
  assert.equal(Buffer.from(to.view()).toString(), "kept");
});

test("lists and objects are closed where they began, empty ones too", () => {
  const text = written((to) => {
    to.ascii(",");
    const list = to.length;
    to.next(1);
    to.comma();
    const inner = to.length;
    to.list(inner);
    to.comma();
    const object = to.length;
    to.ascii(',"a":2');
    to.object(object);
    to.list(list);
  });
  assert.equal(text, ',[1,[],{"a":2}]');
});
