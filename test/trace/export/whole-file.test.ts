import assert from "node:assert/strict";
import { chmodSync, lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writeWholeFile } from "#trace/export/whole-file.ts";

test("a file is there whole or as it was, keeps its mode, and a link to it stays one", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-whole-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [file, link] = [join(folder, "out.json"), join(folder, "link.json")];
  writeWholeFile(file, "first");
  chmodSync(file, 0o640);
  symlinkSync("out.json", link);
  const long = "é".repeat(300_000);
  function* broken() {
    yield long;
    yield long;
    throw new Error("no more");
  }
  assert.throws(() => writeWholeFile(file, broken()), { message: "no more" });
  assert.equal(readFileSync(file, "utf8"), "first");
  writeWholeFile(link, [long, long, "end"]);
  assert.equal(readFileSync(file, "utf8"), `${long}${long}end`);
  assert.ok(lstatSync(link).isSymbolicLink());
  assert.equal(statSync(file).mode & 0o777, 0o640);
  assert.deepEqual(readdirSync(folder).toSorted(), ["link.json", "out.json"]);
});

test("what is no file is written to, and an error names the path that was given", () => {
  writeWholeFile("/dev/null", "gone");
  assert.ok(statSync("/dev/null").isCharacterDevice());
  assert.throws(() => writeWholeFile("/dev/full", "too much"), { code: "ENOSPC", path: "/dev/full" });
  assert.throws(() => writeWholeFile("/no/such/folder/out", ""), { code: "ENOENT", path: "/no/such/folder/out" });
});
