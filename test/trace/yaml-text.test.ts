import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { YAML_FAULTS_MAX, readYaml, yamlValueOf } from "#trace/yaml-text.ts";

describe("a YAML text", () => {
  test("is plain data", () => {
    assert.deepEqual(yamlValueOf("a: [1, {b: x}]\nc: &d 2\ne: *d\n"), {
      ok: true,
      value: { a: [1, { b: "x" }], c: 2, e: 2 },
    });
    assert.deepEqual(yamlValueOf('{"a": null}'), { ok: true, value: { a: null } });
    assert.deepEqual(yamlValueOf(""), { ok: true, value: null });
  });

  for (const [what, text, code, message] of [
    ["two equal keys", "a: 1\nb:\n  c: 1\n  c: 2\n", "DUPLICATE_KEY", /unique at line 4$/],
    ["two equal numbers as keys", "1: 1\n1: 2\n", "DUPLICATE_KEY", /at line 2$/],
    ["a list that is not closed", "a: [1", "BAD_INDENT", /at line 1$/],
    ["two documents", "a: 1\n---\nb: 1\n", "MULTIPLE_DOCS", /at line 2$/],
    ["an alias of nothing", "a: *b\n", "BAD_ALIAS", /Unresolved alias .*: b/],
    [
      "aliases of aliases",
      `a0: &a0 [1]\n${Array.from({ length: 20 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i},`.repeat(10)}]\n`).join("")}`,
      "BAD_ALIAS",
      /alias/,
    ],
    ["too many levels", "[".repeat(20_000), "", /too many levels|at line 1/],
  ] as const) {
    test(`that has ${what} is refused`, () => {
      const read = yamlValueOf(text);
      assert.ok(!read.ok);
      assert.match(read.message, message);
      if (code !== "") assert.match(read.code, new RegExp(code));
    });
  }

  test("may have the same key in two mappings", () => {
    assert.ok(yamlValueOf("a: {x: 1}\nb: {x: 1}\n").ok);
  });

  test("with very many equal keys shows the first of them", () => {
    const read = readYaml("k: 1\n".repeat(10 * YAML_FAULTS_MAX));
    assert.ok(typeof read !== "string");
    assert.equal(read.faults.length, YAML_FAULTS_MAX);
    assert.deepEqual(read.faults[0]!.pos, [5, 5]);
  });
});
