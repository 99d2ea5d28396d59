import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

const ROOT = resolve(import.meta.dirname, "../..");
/** Tests and files that need something which is not everywhere are named all the same. */
const FILES = ["test/picker/*.test.ts", "test/core/router.test.ts"].flatMap((pattern) =>
  globSync(pattern, { cwd: ROOT }),
);
const TITLES = FILES.flatMap((file) => {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(/\btest\(\s*["`]([^"`]+)["`]/g)].map(([, title = ""]) => title);
});

test("every statement of the protocol has a test that is there, or a reason why it has none", () => {
  const page = readFileSync(join(ROOT, "src/picker/README.md"), "utf8");
  const table = page.slice(page.indexOf("## The Endpoint Picker Protocol"));
  const rows = [...table.matchAll(/^\| (?!statement|---)(.+) \| (.+) \|$/gm)];
  assert.ok(rows.length >= 14);
  for (const [, statement = "", named = ""] of rows) {
    const titles = [...named.matchAll(/`([^`]+)`(?: \((\d+)\))?/g)];
    const isNamed = titles.length > 0 || /\w+\.test\.ts|the same|^none: /.test(named);
    assert.ok(isNamed, `${statement} names no test`);
    for (const [file] of named.matchAll(/[\w-]+\.test\.ts/g))
      assert.ok(
        FILES.some((one) => one.endsWith(`/${file}`)),
        `${statement}: no ${file}`,
      );
    for (const [, title = "", count = "1"] of titles) {
      const begin = title.replace(/,? ?\.\.\.$/, "");
      const found = TITLES.filter((one) => one.startsWith(begin)).length;
      assert.ok(found >= 1 && (count === "1" || found === Number(count)), `${statement}: ${found} tests ${begin}`);
    }
  }
});
