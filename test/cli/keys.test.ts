import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ConfigError } from "#config/config-error.ts";
import { readKeysFile } from "#config/keys-file.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { liveKeys } from "#serve/clients/live-keys.ts";
import { keysCommand } from "#cli/keys.ts";
import { inProcess } from "./in-process.ts";

/** `gnomon keys new ... >> file`; returns the key. */
async function appended(t: TestContext, file: string, ...flags: string[]): Promise<string> {
  const { code, out, notes } = await inProcess(t, [keysCommand()], ["keys", "new", ...flags]);
  assert.equal(code, 0, notes);
  appendFileSync(file, out);
  return notes.trim();
}

function emptyFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-keys-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, "keys.yaml");
}

test("keys that were appended one after another to a file that was not there let their clients in", async (t) => {
  for (const head of ["", "keys:\n"]) {
    const file = emptyFile(t);
    if (head !== "") writeFileSync(file, head);
    const first = await appended(t, file, "--name", "acme-1", "--tenant", "acme", "--class", "batch");
    const second = await appended(t, file, "--name", "other", "--classes", "batch", "--classes", "critical");
    const keys = liveKeys(CONFIG_SCHEMA.parse({ clients: { keysFile: file } }), {}, () => {});
    t.after(() => keys.stop());
    assert.deepEqual(
      [first, second, "neither"].map((key) => keys.auth!(`Bearer ${key}`, undefined)?.tenant),
      ["acme", "other", undefined],
    );
  }
});

test("what is wrong in entries alone is named with its line", (t) => {
  const file = emptyFile(t);
  const entry = (name: string): string => `  - name: ${name}\n    sha256: ${"a".repeat(64)}\n`;
  writeFileSync(file, entry("a") + entry("b"));
  assert.throws(
    () => readKeysFile(file),
    (error: unknown) =>
      error instanceof ConfigError && /^keys\[1\]\.sha256: is there twice.* line 4\)$/.test(error.lines.join()),
  );
});
