import assert from "node:assert/strict";
import { test } from "node:test";
import { rolloutLine, rolloutReport, rolloutTable } from "#cli/rollout/rollout-text.ts";
import { rolloutViewCase } from "../../live/rollout/rollout-view-case.ts";

test("the command line's status, its table and the report have the verdict of the API, word for word", () => {
  for (const text of [
    "after 6 of 11 blocks: round-robin is slower by 9 to 22 % (E2E mean); roll back",
    "not known yet: could find 14 % now; about 12 minutes more",
  ]) {
    const view = rolloutViewCase({ verdict: { text, advice: "wait", done: 6, planned: 11, unit: "blocks" } });
    for (const shown of [rolloutLine(view), rolloutTable(view), rolloutReport(view)])
      assert.ok(shown.includes(text), shown);
  }
});
