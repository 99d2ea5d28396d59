import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { type JsonLimits, JsonScan } from "#live/base/json-scan.ts";

const NONE: JsonLimits = {
  jsonDepthMax: 1e9,
  jsonKeysMax: 1e9,
  jsonFieldsMax: 1e9,
  jsonItemsMax: 1e9,
  jsonValuesMax: 1e9,
};

interface Counts {
  depth: number;
  keys: number;
  items: number;
}

function counted(value: unknown, depth = 0, counts: Counts = { depth: 0, keys: 0, items: 0 }): Counts {
  if (typeof value === "string") counts.items++;
  if (typeof value !== "object" || value === null) return counts;
  counts.items++;
  counts.depth = Math.max(counts.depth, depth + 1);
  if (!Array.isArray(value)) counts.keys += Object.keys(value).length;
  for (const one of Object.values(value)) counted(one, depth + 1, counts);
  return counts;
}

/** The bound crossed, looking at so many bytes at once. */
function crossed(text: string, limits: Partial<JsonLimits>, bytesAtOnce: number): keyof JsonLimits | undefined {
  const scan = new JsonScan(Buffer.from(text), { ...NONE, ...limits });
  while (!scan.advance(bytesAtOnce));
  return scan.crossed;
}

const json = fc.oneof(
  fc.jsonValue({ maxDepth: 6 }),
  fc.jsonValue({ stringUnit: fc.constantFrom('"', "\\", "[", "{", ":", ",", "}", "é", "\n", "a".repeat(40)) }),
);

test("counts what a reader finds, whatever the slices", () => {
  fc.assert(
    fc.property(json, fc.constantFrom(undefined, 1), fc.constantFrom(1, 7, 64, 1 << 20), (value, indent, bytes) => {
      const text = JSON.stringify(value, undefined, indent);
      const { depth, keys, items } = counted(JSON.parse(text));
      const exact = { jsonDepthMax: depth, jsonKeysMax: keys, jsonItemsMax: items };
      assert.equal(crossed(text, exact, bytes), undefined);
      if (depth > 0) assert.equal(crossed(text, { ...exact, jsonDepthMax: depth - 1 }, bytes), "jsonDepthMax");
      if (keys > 0) assert.equal(crossed(text, { ...exact, jsonKeysMax: keys - 1 }, bytes), "jsonKeysMax");
      const fields = typeof value === "object" && !Array.isArray(value) ? Object.keys(value ?? {}).length : 0;
      assert.equal(crossed(text, { jsonFieldsMax: fields }, bytes), undefined);
      if (fields > 0) assert.equal(crossed(text, { jsonFieldsMax: fields - 1 }, bytes), "jsonFieldsMax");
      if (items > 0) assert.equal(crossed(text, { ...exact, jsonItemsMax: items - 1 }, bytes), "jsonItemsMax");
    }),
  );
});

test("numbers count as values, and texts that are no JSON end", () => {
  assert.equal(crossed("[1,2,3]", { jsonValuesMax: 4 }, 3), undefined);
  assert.equal(crossed("[1,2,3,4]", { jsonValuesMax: 4 }, 3), "jsonValuesMax");
  for (const text of ['"', '"\\', "]]]]", "{{", '"abc\\"', "", `"${"\\".repeat(99)}`, `"${"x".repeat(99)}`]) {
    assert.equal(crossed(text, {}, 2), undefined, text);
  }
});
