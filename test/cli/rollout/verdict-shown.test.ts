import assert from "node:assert/strict";
import { test } from "node:test";
import { rolloutLine, rolloutReport, rolloutTable } from "#cli/rollout/rollout-text.ts";
import { defaultGuardrails } from "#serve/rollout/guardrails.ts";
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

test("status and report say whether requests are predicted, and of a switchback what is not seen where they are not", () => {
  const without = rolloutViewCase({ adjustment: null });
  const withThem = rolloutViewCase({ adjustment: { predicted: 90, unpredicted: 10, waiting: 5 } });
  for (const shown of [rolloutTable, rolloutReport]) {
    assert.match(shown(without), /p99 twice as long may take four hours .*\(rollout\.predict, adjusted\)/);
    assert.match(shown(withThem), /90 of 100 requests, and 5 wait for it/);
    assert.doesNotMatch(shown(withThem), /four hours/);
    const split = { ...without, design: { ...without.design, kind: "split" as const } };
    assert.doesNotMatch(shown(split), /four hours/);
  }
});

test("every column of the tables has a heading, and no two guardrails look alike", () => {
  const [one] = rolloutViewCase().guardrails;
  const guardrails = ["b", "c"].flatMap((arm) =>
    defaultGuardrails().map(({ figure, absoluteMax = null, relativeMax = null, each = null }) => ({
      ...one!,
      arm,
      figure,
      absoluteMax,
      relativeMax,
      each,
      crossed: figure === "error-rate",
    })),
  );
  const view = rolloutViewCase({ guardrails });
  const cells = (line: string): string[] =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
  const lines = rolloutReport(view)
    .split("\n")
    .filter((line) => line.startsWith("|"));
  const heads = lines.filter((_, i) => lines[i + 1]?.startsWith("| ---") === true);
  assert.equal(heads.length, 3);
  for (const head of heads) assert.ok(!cells(head).includes(""), head);
  const rows = lines.slice(lines.indexOf(heads[2]!) + 2).map((line) => cells(line).slice(0, 3).join(" "));
  assert.equal(rows.length, guardrails.length);
  assert.equal(new Set(rows).size, rows.length, rows.join("\n"));
  const table = rolloutTable(view);
  assert.equal(table.match(/^│ c +│/gm)?.length, 1, "an arm is named once in a table");
});
