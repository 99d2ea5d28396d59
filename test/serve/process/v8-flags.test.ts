import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";

const SERVE = resolve(import.meta.dirname, "../../../src/serve");

test("this V8 has every flag that serve sets, which it would pass over otherwise", () => {
  const { stdout } = spawnSync(process.execPath, ["--v8-options"], { encoding: "utf8" });
  const known = new Set([...stdout.matchAll(/^ {2}--([\w-]+)/gm)].map(([, name]) => name));
  const set = globSync("**/*.ts", { cwd: SERVE }).flatMap((file) =>
    [...readFileSync(resolve(SERVE, file), "utf8").matchAll(/setFlagsFromString\("--(?:no-)?([\w-]+)/g)].map(
      ([, name]) => name!,
    ),
  );
  assert.ok(set.length >= 3, `${set.length} flags are set`);
  assert.deepEqual(
    set.filter((name) => !known.has(name)),
    [],
  );
});
