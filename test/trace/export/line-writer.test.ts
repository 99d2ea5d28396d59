import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { LineWriter } from "#trace/export/line-writer.ts";

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "gnomon-lines-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

const LINES = Array.from({ length: 40_000 }, (_, i) => `line ${i}\n`);
const READ: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
  ["a.jsonl", (bytes) => bytes],
  ["a.jsonl.gz", gunzipSync],
  ["a.jsonl.zst", zstdDecompressSync],
];

test("a file has its name once it is whole, and one that is interrupted or abandoned never has", async (t) => {
  for (const [name, read] of READ) {
    const path = folder(t);
    const writer = new LineWriter(join(path, name));
    for (const line of LINES) await writer.write(line);
    assert.ok(!readdirSync(path).includes(name), "as it is where the process ends now");
    await writer.close();
    assert.deepEqual(readdirSync(path), [name]);
    assert.equal(read(readFileSync(join(path, name))).toString(), LINES.join(""));
    const abandoned = new LineWriter(join(path, "other"));
    for (const line of LINES) await abandoned.write(line);
    await abandoned.abandon();
    assert.deepEqual(readdirSync(path), [name]);
  }
});

test("a file that is there is not written over", async (t) => {
  const path = join(folder(t), "mine.jsonl");
  writeFileSync(path, "mine");
  const writer = new LineWriter(path);
  await writer.write("other");
  await assert.rejects(writer.close(), { code: "EEXIST" });
  await writer.abandon();
  assert.equal(readFileSync(path, "utf8"), "mine");
});

test("where it cannot be written, the file that was asked for is named", async (t) => {
  const path = join(folder(t), "absent", "a.jsonl");
  const writer = new LineWriter(path);
  await writer.write("line");
  await assert.rejects(writer.close(), (error: Error) => error.message.includes(`'${path}'`));
});
