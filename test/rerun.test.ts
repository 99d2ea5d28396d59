import assert from "node:assert/strict";
import { test } from "node:test";
import { processesToRerun, verdictOf } from "./rerun.ts";

const files = ["test/core/a.test.ts", "test/core/b.test.ts"];

test("of a process that many files share only the file that failed is run again", () => {
  const output = "✖ failing tests:\n\ntest at test/core/b.test.ts:3:27\n✖ fails (1 ms)\n";
  const again = processesToRerun([{ files, isShared: true, output }]);
  assert.deepEqual(again, [{ files: ["test/core/b.test.ts"], isShared: false }]);
});

test("where the failing file is not one of the process's, or none is named, the whole process is", () => {
  const contract = "test at test/core/contract.ts:3:27\n✖ fails (1 ms)\n";
  for (const output of [contract, "killed"]) {
    assert.deepEqual(processesToRerun([{ files, isShared: true, output }]), [{ files, isShared: true }]);
  }
});

test("much that fails is not run again", () => {
  const failed = Array.from({ length: 6 }, (_, i) => ({ files: [`${i}.test.ts`], isShared: false, output: "killed" }));
  assert.equal(processesToRerun(failed.slice(1)).length, 5);
  assert.deepEqual(processesToRerun(failed), []);
});

const failures = (...names: string[]): string => names.map((name) => `\ntest at x\n✖ ${name} (1.5ms)\n`).join("");
const run = (names: readonly string[], again: { files: string[]; failures: string } | undefined) => ({
  counts: { passed: 10, failed: names.length, skipped: 1 },
  failures: failures(...names),
  again,
});

test("what passed only when run again alone is named and fails the run, unless so much is tolerated", () => {
  const one = run(["is slow"], { files: ["test/a.test.ts"], failures: "" });
  const note = '; passed only when run again alone, and to be mended: test/a.test.ts "is slow"';
  assert.deepEqual(verdictOf(one, 0), { isGood: false, line: `10 passed, 1 failed, 1 skipped${note}` });
  assert.deepEqual(verdictOf(one, 1), { isGood: true, line: `11 passed, 0 failed, 1 skipped${note}` });
  const three = run(["a", "b", "c"], { files: ["test/a.test.ts"], failures: "" });
  assert.deepEqual(
    [0, 1, 2, 3].map((tolerated) => verdictOf(three, tolerated).isGood),
    [false, false, false, true],
  );
});

test("what fails again, or is not tried again, is tolerated by nobody", () => {
  const files = ["test/a.test.ts"];
  for (const again of [{ files, failures: failures("a") }, undefined]) {
    assert.deepEqual(verdictOf(run(["a"], again), 2), { isGood: false, line: "10 passed, 1 failed, 1 skipped" });
  }
});

test("a process that was killed counts, though it names no test", () => {
  const killed = { counts: { passed: 10, failed: 0, skipped: 0 }, failures: "\ntest/a.test.ts: ended with code 1\n" };
  const verdict = verdictOf({ ...killed, again: { files: ["test/a.test.ts"], failures: "" } }, 0);
  assert.equal(verdict.isGood, false);
  assert.match(verdict.line, /^10 passed, 1 failed, 0 skipped; .*: test\/a\.test\.ts$/);
  assert.equal(verdictOf({ ...killed, again: undefined }, 2).isGood, false);
});

test("a run without failures is good", () => {
  assert.deepEqual(verdictOf(run([], undefined), 0), { isGood: true, line: "10 passed, 0 failed, 1 skipped" });
});
