import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RecentRequests } from "#core/base/request-table.ts";

const ENTRIES_MAX = 16;
const IDS = 40;

const operations = fc.array(
  fc.record({
    kind: fc.constantFrom("set", "set", "delete", "get", "clear"),
    key: fc.nat(IDS),
    value: fc.nat(),
    rare: fc.nat(20),
  }),
  { maxLength: 400 },
);

test("recent requests answer as a Map of which the entry that was set first leaves, whatever comes and goes", () => {
  fc.assert(
    fc.property(operations, (list) => {
      const recent = new RecentRequests<number>(ENTRIES_MAX);
      const model = new Map<string, number>();
      for (const { kind, key, value, rare } of list) {
        const id = `request-${key}`;
        if (kind === "set") {
          recent.set(id, value);
          model.delete(id);
          model.set(id, value);
          if (model.size > ENTRIES_MAX) model.delete([...model.keys()][0]!);
        } else if (kind === "delete") {
          recent.delete(id);
          model.delete(id);
        } else if (kind === "clear" && rare === 0) {
          recent.clear();
          model.clear();
        }
        assert.equal(recent.size, model.size);
        for (let other = 0; other <= IDS; other++)
          assert.equal(recent.get(`request-${other}`), model.get(`request-${other}`));
      }
    }),
  );
});
