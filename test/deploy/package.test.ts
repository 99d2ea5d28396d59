import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { erase } from "../../deploy/package/erase.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const IMPORTS = (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { imports: Record<string, string> })
  .imports;

/** Names of our own modules in a text that has no types any more. */
const NAME = /(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*"([#.][^"]*\.[jt]s)"/g;

test("in the package every module is named by its JavaScript, and is there", () => {
  const wrong: string[] = [];
  for (const file of globSync("src/**/*.ts", { cwd: ROOT })) {
    const text = erase(readFileSync(join(ROOT, file), "utf8"));
    for (const [, name = ""] of text.matchAll(NAME)) {
      const source = resolve(ROOT, pathOf(name, file).replace(/\.js$/, ".ts"));
      if (name.endsWith(".ts") || !existsSync(source)) wrong.push(`${file}: ${name}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("types become spaces, so that places in the package are those of the source", () => {
  const source = 'import type { A } from "./a.ts";\nimport { b } from "#core/b.ts";\nexport const c: A = b as A;\n';
  const erased = erase(source);
  assert.equal(erased.indexOf("export const"), source.indexOf("export const"));
  assert.match(erased, /import \{ b \} from "#core\/b\.js";/);
  assert.ok(!erased.includes("./a"));
});

function pathOf(name: string, file: string): string {
  if (name.startsWith(".")) return join(dirname(file), name);
  const folder = name.slice(0, name.indexOf("/") + 1);
  const target = IMPORTS[`${folder}*`] ?? "";
  return target.replace("*", name.slice(folder.length));
}
