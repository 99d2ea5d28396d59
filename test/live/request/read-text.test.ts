import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { type JsonLimits, JsonScan, readText } from "#live/base/json-scan.ts";
import { KnownBodies } from "#live/request/known-bodies.ts";
import { DEFAULT_LIMITS } from "#live/http/limits.ts";
import { type ParsedRequest, parseRequest } from "#live/request/parse-request.ts";
import { Routes } from "#live/http/route.ts";

const CHAT = new Routes().of("/v1/chat/completions")!;
const NAMES = ["response_format", "structured_outputs", "guided_json", "metadata"];
const NONE: JsonLimits = {
  jsonDepthMax: 1e9,
  jsonKeysMax: 1e9,
  jsonFieldsMax: 1e9,
  jsonItemsMax: 1e9,
  jsonValuesMax: 1e9,
};

function keys(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, one) => sum + keys(one), own);
}

function manyKeys(count: number, more: object = {}): object {
  return { ...Object.fromEntries(Array.from({ length: count }, (_, i) => [`key "${i}"`, { "}": i }])), ...more };
}

test("objects of more than 64 keys in fields that nothing reads are left out, and nothing else is", () => {
  const key = fc.oneof(
    fc.constantFrom(...NAMES),
    fc.constantFrom("messages", "tools", "respons\u00e9_format", " response_format", 'a","metadata', "metadata\\"),
    fc.string({ maxLength: 12 }),
  );
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    { weight: 3, arbitrary: fc.integer({ min: 10, max: 60 }).map((count) => manyKeys(count)) },
    fc.array(fc.record({ metadata: fc.integer({ min: 10, max: 60 }).map((count) => manyKeys(count)) }), {
      maxLength: 2,
    }),
  );
  let left = 0;
  fc.assert(
    fc.property(
      fc.dictionary(key, value, { minKeys: 2, maxKeys: 6 }),
      fc.constantFrom(undefined, 2),
      fc.constantFrom(1, 7, 1 << 20),
      (fields, indent, bytesAtOnce) => {
        const body = Buffer.from(JSON.stringify(fields, undefined, indent));
        const scan = new JsonScan(body, NONE);
        while (!scan.advance(bytesAtOnce));
        left += scan.unread.length;
        const expected = Object.entries(fields).map(([name, one]) => {
          const isLeftOut = NAMES.includes(name) && !Array.isArray(one) && keys(one) > 64;
          return [name, isLeftOut ? {} : one];
        });
        const read = JSON.parse(readText(body, 0, body.length, scan.unread)) as object;
        assert.deepEqual(Object.entries(read), JSON.parse(JSON.stringify(expected)));
      },
    ),
  );
  assert.ok(left > 20, `some were left out: ${left}`);
});

function parsed(body: string, known?: KnownBodies): ParsedRequest {
  const request = parseRequest(CHAT, "application/json", Buffer.from(body), DEFAULT_LIMITS, undefined, known);
  assert.ok(!(request instanceof Promise) && "prompt" in request);
  return request;
}

test("a schema of many properties counts as there, before and behind the messages, of a chat that goes on as well", () => {
  const known = new KnownBodies({});
  const schema = { type: "json_schema", json_schema: { name: "s", schema: { properties: manyKeys(300) } } };
  for (let turns = 1; turns <= 6; turns++) {
    const messages = Array.from({ length: 4 * turns }, (_, i) => ({ role: "user", content: `${i} `.repeat(600) }));
    const body = JSON.stringify({ metadata: manyKeys(100), model: "m", messages, response_format: schema });
    const { fields } = parsed(body, known);
    assert.deepEqual(fields, { metadata: {}, model: "m", messages, response_format: {} });
  }
  assert.ok((known.counts["known"] ?? 0) > 1, "some were read on");
});
