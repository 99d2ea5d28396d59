import assert from "node:assert/strict";
import { test } from "node:test";
import { processesToRerun } from "./rerun.ts";

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
