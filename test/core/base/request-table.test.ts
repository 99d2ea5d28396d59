import assert from "node:assert/strict";
import { test } from "node:test";

import fc from "fast-check";

import { RequestTable } from "#core/base/request-table.ts";

const operations = fc.array(
  fc.record({ kind: fc.constantFrom("set", "add", "delete", "take", "get"), key: fc.nat(120), value: fc.nat() }),
  { maxLength: 600 },
);

test("a table of requests answers as a Map does, whatever comes and goes", () => {
  fc.assert(
    fc.property(operations, (list) => {
      const table = new RequestTable<number>();
      const model = new Map<string, number>();
      for (const { kind, key, value } of list) {
        const id = `request-${key}`;
        if (kind === "set") {
          table.set(id, value);
          model.set(id, value);
        } else if (kind === "add") {
          assert.equal(table.add(id, value), !model.has(id));
          if (!model.has(id)) model.set(id, value);
        } else if (kind === "take") {
          assert.equal(table.take(id), model.get(id));
          model.delete(id);
        } else if (kind === "delete") assert.equal(table.delete(id), model.delete(id));
        assert.equal(table.get(id), model.get(id));
        assert.equal(table.has(id), model.has(id));
        assert.equal(table.size, model.size);
      }
      for (let key = 0; key <= 120; key++) assert.equal(table.get(`request-${key}`), model.get(`request-${key}`));
    }),
  );
});

test("it holds many at once", () => {
  const table = new RequestTable<number>();
  for (let i = 0; i < 10_000; i++) table.set(`${i}`, i);
  for (let i = 0; i < 10_000; i += 2) assert.ok(table.delete(`${i}`));
  for (let i = 0; i < 10_000; i++) assert.equal(table.get(`${i}`), i % 2 === 0 ? undefined : i);
  assert.equal(table.size, 5_000);
});
