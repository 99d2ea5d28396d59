import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { checkShape, problemLine, unknownWord } from "#config/problem.ts";
import { parseYamlFile } from "#config/yaml-file.ts";

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

test("of a value that may also be null both are named", () => {
  const checked = checkShape(z.object({ hits: z.number().nullable(), end: z.enum(["a", "b"]).nullable() }), {});
  const lines = checked.ok ? [] : checked.problems.map((problem) => problemLine(problem));
  assert.deepEqual(lines, [
    "hits: expected a number or null, got nothing",
    "end: expected one of a, b or null, got nothing",
  ]);
});

test("of a text in a form of its own the form is named", () => {
  const checked = checkShape(z.object({ page: z.url(), until: z.iso.datetime() }), { page: "foo", until: "now" });
  const lines = checked.ok ? [] : checked.problems.map((problem) => problemLine(problem));
  assert.deepEqual(lines, [
    'page: expected a URL, got "foo"',
    'until: expected a date and time such as 2026-01-31T12:00:00Z, got "now"',
  ]);
});

test("a word outside a short set is shown with the set, outside a long one without", () => {
  assert.match(unknownWord("kind", "xyzzy", ["a", "b"]), /^expected one of a, b, got the unknown kind "xyzzy"$/);
  const many = Array.from({ length: 200 }, (_, i) => `word${i}`);
  assert.match(
    unknownWord("profile", "zzzzzzzzz", many),
    /^expected a profile that exists, got the unknown profile "z+"$/,
  );
});

test("of forms that one key chooses among, all are named, and the one that was likely meant", () => {
  const form = z.discriminatedUnion("type", [
    z.strictObject({ type: z.literal("rate-limit"), requestsMax: z.int().min(1).max(9) }),
    z.strictObject({ type: z.literal("hard-cap") }),
  ]);
  const of = (value: unknown) => {
    const checked = checkShape(z.strictObject({ limits: z.record(z.string(), form) }), { limits: { a: value } });
    return checked.ok ? [] : checked.problems.map((problem) => problemLine(problem));
  };
  const accepted = "limits.a.type: expected one of rate-limit, hard-cap, got";
  assert.deepEqual(of({}), [`${accepted} nothing`]);
  assert.deepEqual(of({ type: 5 }), [`${accepted} 5`]);
  assert.deepEqual(of({ type: "rate-limt" }), [`${accepted} the unknown type "rate-limt"; did you mean rate-limit?`]);
  assert.deepEqual(of({ type: "rate-limit", requestsMax: "x" }), [
    'limits.a.requestsMax: expected an integer in [1, 9], got "x"',
  ]);
});

test("a value of another kind is named by its kind, never by what is in it", () => {
  const shape = z.strictObject({ url: z.string(), port: z.int().min(0).max(9), names: z.array(z.string()) });
  const of = (value: unknown) => {
    const checked = checkShape(shape, value);
    return checked.ok ? [] : checked.problems.map((problem) => problemLine(problem));
  };
  assert.deepEqual(of({ url: { key: "sk-secret" }, port: ["sk-secret", 2], names: null }), [
    "url: expected a string, got a mapping",
    "port: expected an integer in [0, 9], got a list of 2",
    "names: expected a list, got null",
  ]);
  const long = "x".repeat(100);
  assert.deepEqual(of({ url: "u", port: long, names: [] }), [
    `port: expected an integer in [0, 9], got "${"x".repeat(59)}…`,
  ]);
});

test("a file of very many keys is read in time that grows with it, equal keys and too many levels are refused", () => {
  const lines = Array.from({ length: 20_000 }, (_, i) => `k${i}: 1\n`).join("");
  const started = process.threadCpuUsage().user;
  const parsed = parseYamlFile("named", lines);
  // Where each key is compared with each, it is 20 s.
  assert.ok(process.threadCpuUsage().user - started < 5_000_000);
  assert.ok(parsed.ok && Object.keys(parsed.value.value as object).length === 20_000);
  if (parsed.ok) for (let i = 0; i < 20_000; i++) assert.equal(parsed.value.lineOf([`k${i}`, "below"]), i + 1);
  for (const text of [`${lines}k7: 2\n`, "a: {b: 1, b: 1}\n", "- {b: 1, c: {d: 1, d: 2}}\n"]) {
    const equal = parseYamlFile("named", text);
    assert.match(equal.ok ? "" : equal.problems[0]!.message, /map keys must be unique/);
  }
  const deep = parseYamlFile("named", "[".repeat(100_000));
  assert.match(deep.ok ? "" : deep.problems[0]!.message, /^expected YAML, got /);
});

test("a file that is no YAML is refused with the line and the reason, without a word of what stands there", () => {
  for (const [text, reason] of [
    ['a: 1\napiKey: "sk-secret\n', /expected YAML, got .* \(named line \d\)$/],
    ["a: 1\napiKey: sk-secret\n  b: sk-secret: c\n", /\(named line [23]\)$/],
    ["apiKey: sk-secret\napiKey: sk-secret\n", /unique.* \(named line 2\)$/],
  ] as const) {
    const parsed = parseYamlFile("named", text);
    assert.ok(!parsed.ok);
    assert.match(parsed.problems[0]!.message, reason);
    for (const { message } of parsed.problems) {
      assert.ok(!message.includes("secret") && !message.includes("\n"), message);
    }
  }
});
