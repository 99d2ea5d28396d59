import assert from "node:assert/strict";
import { test } from "node:test";
import { endAll } from "../../bench/children.ts";
import { mixedPart } from "../../bench/faults/engines.ts";

/** The short part of `npm run faults`: endpoints and gateway are processes of their own, which takes seconds to start. */
test("400 requests of which a quarter of all attempts meets some fault leave nothing behind", async (t) => {
  t.after(endAll);
  for (const { what, figure, holds } of await mixedPart(5, 400)) assert.ok(holds, `${what}: ${figure}`);
});
