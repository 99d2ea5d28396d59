import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { namedMutants } from "./named.ts";

test("the code that each named mutant changes is in its file once", () => {
  assert.ok(namedMutants(join(import.meta.dirname, "../..")).length > 10);
});
