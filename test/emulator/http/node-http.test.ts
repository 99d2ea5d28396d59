import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { createServer } from "#emulator/http/node-http.ts";

const EMULATOR = resolve(import.meta.dirname, "../../../src/emulator");

test("an engine takes types alone from node:http by its name, which would load fetch and web sockets", () => {
  const files = globSync("**/*.ts", { cwd: EMULATOR });
  assert.ok(files.length > 50, `${files.length}`);
  const imports = /^import (?!type )[^;]*? from "node:https?";/m;
  assert.deepEqual(
    files.filter((name) => imports.test(readFileSync(join(EMULATOR, name), "utf8"))),
    [],
  );
  assert.equal(createServer, process.getBuiltinModule("node:http").createServer);
});
