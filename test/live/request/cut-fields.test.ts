import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isFields } from "#live/base/fields.ts";
import { cutFields } from "#live/request/cut-fields.ts";

const NAMES: ReadonlySet<string> = new Set(["kv_transfer_params", "priority"]);
const WITHIN: ReadonlySet<string> = new Set(["vllm_xargs", "extra_args"]);

function cut(json: string): string | undefined {
  return cutFields(Buffer.from(json), NAMES, WITHIN)?.toString();
}

/** What is to be left, by another way: of what JSON.parse reads. */
function without(value: unknown): unknown {
  if (!isFields(value)) return value;
  const kept = Object.entries(value).filter(([name]) => !NAMES.has(name));
  return Object.fromEntries(kept.map(([name, inner]) => [name, WITHIN.has(name) ? without(inner) : inner]));
}

test("a field goes with its comma, and every other byte stays", () => {
  for (const [given, left] of [
    ['{"priority":1}', "{}"],
    ['{ "priority" : 1 }', "{ }"],
    ['{"a":1,"priority":2}', '{"a":1}'],
    ['{"priority":2, "a": 1}', '{"a": 1}'],
    ['{"a":1,"priority":[{"b":"}"}],"c":"x,\\"priority\\":1"}', '{"a":1,"c":"x,\\"priority\\":1"}'],
    ['{"a":1 , "priority":1,"priority":2 ,"kv_transfer_params":{}}', '{"a":1 }'],
    ['{"priority":1,"priority":2}', "{}"],
    ['{"kv\\u005ftransfer_params":{"remote_host":"h"},"a":null}', '{"a":null}'],
    [
      '{"messages":[{"priority":1}],"metadata":{"priority":1}}',
      '{"messages":[{"priority":1}],"metadata":{"priority":1}}',
    ],
    [
      '{"vllm_xargs":{"priority":1,"b":2,"extra_args":{"priority":3}},"priority":4}',
      '{"vllm_xargs":{"b":2,"extra_args":{}}}',
    ],
    ['\u{FEFF} {"priority":1,"a":1}\n', '\u{FEFF} {"a":1}\n'],
  ] as const)
    assert.equal(cut(given), left, given);
});

test("what is no object is left to be refused", () => {
  for (const given of [
    "",
    "[]",
    '"a"',
    '{"a":1',
    '{"a"1}',
    "{a:1}",
    '{"a":1,}',
    '{"priority":1',
    '{"vllm_xargs":{"a" 1}}',
  ])
    assert.equal(cut(given), undefined, given);
});

/** A key, at times written with escapes; what it is stays the same. */
const key = fc
  .tuple(
    fc.oneof(
      fc.constantFrom("kv_transfer_params", "priority", "vllm_xargs", "extra_args", "a", "__proto__"),
      fc.string(),
    ),
    fc.array(fc.boolean(), { maxLength: 20 }),
  )
  .map(([name, escapes]) => {
    const units = JSON.stringify(name).slice(1, -1).split("");
    if (units.includes("\\")) return JSON.stringify(name);
    const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
    return `"${units.map((unit, i) => (escapes[i] === true ? escaped(unit) : unit)).join("")}"`;
  });
const space = fc.constantFrom("", "", "", " ", "\n\t ");
const { json } = fc.letrec<{ json: string; object: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    fc.json({ maxDepth: 1 }),
    fc.string().map((text) => JSON.stringify(`${text}\\"}],{${text}`)),
    tie("object"),
    fc.array(tie("json"), { maxLength: 3 }).map((items) => `[${items.join(",")}]`),
  ),
  object: fc
    .tuple(fc.array(fc.tuple(key, tie("json"), fc.tuple(space, space, space, space)), { maxLength: 6 }), space)
    .map(([fields, s]) => `{${s}${fields.map(([k, v, [a, b, c, d]]) => `${a}${k}${b}:${c}${v}${d}`).join(",")}}`),
}));
const body = fc
  .tuple(fc.array(fc.tuple(key, json, space), { maxLength: 8 }), space)
  .map(([fields, s]) => `${s}{${fields.map(([k, v, a]) => `${a}${k}${a}:${v}${a}`).join(",")}}${s}`);

/**
 * V8 reads some texts with names that are written with escapes and are there twice another way the second time: it keeps
 * the first value, `{"a":{"":{}},"\\u0061":{},"\\\\":[]}` is the shortest.
 */
function isReadOneWay(text: string): boolean {
  const [first, second, third] = [1, 2, 3].map(() => JSON.stringify(JSON.parse(text)));
  return first === second && second === third;
}

/**
 * As JSON.parse reads it, whatever was read before: with names that need no escapes V8 does not mistake one for another of
 * a text before, as it did `"\\u0020"` for `"\\\\"`.
 */
function read(text: string): unknown {
  const plain = text.replaceAll(/\\(?:u00([2-7][\da-f])|.)/gi, (escape, hex: string | undefined) => {
    const character = hex === undefined ? '"' : String.fromCharCode(Number.parseInt(hex, 16));
    return character === '"' || character === "\\" ? escape : character;
  });
  return JSON.parse(plain);
}

test("whatever the body, what is left reads as the body without those fields, and has none of them", () => {
  fc.assert(
    fc.property(body.filter(isReadOneWay), (given) => {
      const left = cut(given);
      assert.ok(left !== undefined, given);
      assert.deepEqual(read(left), without(read(given) as Record<string, unknown>));
      assert.equal(cut(left), left, "also of fields that were there twice");
      if (!given.includes("priority") && !given.includes("kv_") && !given.includes("\\u")) assert.equal(left, given);
    }),
    { numRuns: 2_000 },
  );
});
