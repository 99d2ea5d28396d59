import assert from "node:assert/strict";
import fs, { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "#config/config-error.ts";
import { checkOutputFile } from "#cli/output/check-output-file.ts";

test("what could not be written is refused before the work: no folder, a folder, and none that takes files", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-output-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [fresh, there] = [join(folder, "fresh.json"), join(folder, "there.json")];
  writeFileSync(there, "");
  const refused = (file: string, expected: RegExp) =>
    assert.throws(
      () => checkOutputFile("--output", file),
      (error: unknown) => error instanceof ConfigError && expected.test(error.lines.join("\n")),
      file,
    );
  for (const file of [fresh, there, "-", "/dev/null"]) checkOutputFile("--output", file);
  refused(join(folder, "absent", "a.json"), /--output: expected a file in a folder that is there/);
  refused(folder, /--output: expected a file, got the folder/);

  // The rights of whoever runs the tests may be all.
  const forbidden = new Set([folder, fresh]);
  const { accessSync } = fs;
  t.mock.method(fs, "accessSync", (path: string, mode: number) => {
    if (forbidden.has(path)) throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
    accessSync(path, mode);
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  refused(fresh, /--output: expected a file that may be written, got .*fresh\.json/);
  checkOutputFile("--output", there);
  forbidden.add(there);
  refused(there, /--output: expected a file that may be written/);
  forbidden.delete(dirname(there));
  checkOutputFile("--output", there);
});
