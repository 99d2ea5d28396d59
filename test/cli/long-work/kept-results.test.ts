import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { KEPT_LIMITS, KeptResults } from "#cli/long-work/kept-results.ts";

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "gnomon-results-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return join(path, "results");
}

const RESULT = { name: "x", times: new Float64Array([1, NaN, Infinity]), left: undefined, of: new Map([["a", 1]]) };

test("a result is there for the same program once it was written, and for no other program and key", (t) => {
  const path = folder(t);
  const one = new KeptResults(path);
  one.put("key", RESULT);
  assert.deepEqual(one.get("key"), RESULT);
  assert.equal(new KeptResults(path).get("key"), undefined, "it was not written yet");
  one.flush();
  const another = new KeptResults(path);
  assert.deepEqual(another.get("key"), RESULT);
  assert.equal(another.get("other"), undefined);
  assert.equal(new KeptResults(path, KEPT_LIMITS, "another version").get("key"), undefined);
  assert.equal(statSync(path).mode & 0o777, 0o700);
});

test("a file that is damaged, cut or empty is none", (t) => {
  const path = folder(t);
  const kept = new KeptResults(path);
  kept.put("key", RESULT);
  kept.flush();
  const file = join(path, readdirSync(path)[0]!);
  const whole = readFileSync(file);
  for (let at = 0; at < whole.length; at += 7) {
    const damaged = Buffer.from(whole);
    damaged[at]! ^= 1;
    writeFileSync(file, damaged);
    const got = new KeptResults(path).get("key");
    if (got !== undefined) assert.deepEqual(got, RESULT);
    writeFileSync(file, whole.subarray(0, at));
    assert.equal(new KeptResults(path).get("key"), undefined);
  }
  writeFileSync(file, whole);
  assert.deepEqual(new KeptResults(path).get("key"), RESULT);
});

test("files and bytes are bounded; what was not used for longest goes first, and what others left half-written", (t) => {
  const path = folder(t);
  const limits = { ...KEPT_LIMITS, filesMax: 20 };
  const kept = new KeptResults(path, limits);
  for (let i = 0; i < 20; i++) {
    kept.put(`${i}`, RESULT);
    kept.flush();
  }
  // Used lately.
  const hourAgo = new Date(Date.now() - 7_200_000);
  for (const name of readdirSync(path)) utimesSync(join(path, name), hourAgo, hourAgo);
  assert.deepEqual(kept.get("3"), RESULT);
  const left = join(path, "x.1.part");
  writeFileSync(left, "half");
  utimesSync(left, hourAgo, hourAgo);
  kept.put("20", RESULT);
  kept.flush();
  const names = readdirSync(path);
  assert.ok(names.length <= 18 && names.length > 10, `${names.length}`);
  assert.ok(!names.includes("x.1.part"));
  assert.deepEqual([kept.get("3"), kept.get("20")], [RESULT, RESULT]);

  const small = new KeptResults(path, { ...limits, bytesMax: 2_000 });
  for (let i = 0; i < 30; i++) small.put(`small ${i}`, { ...RESULT, text: `${Math.sin(i)}`.repeat(5) });
  small.flush();
  const bytes = readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
  assert.ok(bytes <= 2_000, `${bytes}`);
});

test("what waits to be written is bounded, and a result that is too large is not kept", (t) => {
  const path = folder(t);
  const kept = new KeptResults(path, { ...KEPT_LIMITS, resultBytesMax: 1_000, pendingBytesMax: 3_000 });
  kept.put("large", "x".repeat(1_001));
  kept.flush();
  assert.equal(kept.get("large"), undefined);
  for (let i = 0; i < 8; i++) kept.put(`${i}`, "x".repeat(900));
  assert.ok(readdirSync(path).length >= 4);
});

test("where the folder cannot be written nothing is kept, and nobody is kept from work", (t) => {
  const path = folder(t);
  writeFileSync(path, "a file");
  const kept = new KeptResults(path);
  kept.put("key", RESULT);
  kept.flush();
  assert.match(kept.trouble, /EEXIST|ENOTDIR/);
  kept.put("key", RESULT);
  kept.flush();
  assert.equal(kept.get("key"), undefined);
});
