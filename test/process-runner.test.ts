import assert from "node:assert/strict";
import { test } from "node:test";
import { filesOf } from "./process-runner.ts";

test("tests are named by file, by folder or by pattern; a name without any is refused", () => {
  const files = filesOf(["test/core/picker"]);
  assert.ok(
    files.length > 1 && files.every((file) => /^test\/core\/picker\/[\w/.-]+\.test\.ts$/.test(file)),
    files.join(" "),
  );
  assert.deepEqual(filesOf(["test/core/picker/*.test.ts"]), files);
  assert.deepEqual(filesOf([files[0]!, "test/core/picker/"]), [files[0], ...files]);
  assert.throws(() => filesOf(["test/core/nobody.test.ts"]), /expected the name or pattern of test files, found none/);
});
