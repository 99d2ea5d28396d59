import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { differences } from "../../bench/golden/compare.ts";
import { tieBreaks } from "../../bench/golden/go-random.ts";
import type { GoldenCase } from "../../bench/golden/golden-case.ts";
import { readCases } from "../../bench/golden/read-cases.ts";
import { runCase } from "../../bench/golden/run-case.ts";

const FOLDER = fileURLToPath(new URL("../golden/blis/", import.meta.url));
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith(".json") && !name.startsWith("tie_draws"));

function casesOf(file: string): GoldenCase[] {
  return readCases(FOLDER + file).map((golden) => {
    assert.ok(!("problem" in golden), "problem" in golden ? golden.problem : "");
    return golden;
  });
}

for (const file of FILES) {
  test(`BLIS's cluster, to the microsecond: ${file}`, () => {
    for (const golden of casesOf(file)) {
      assert.ok(golden.expected.perRequest.length > 0, `${golden.name} has requests to compare`);
      assert.deepEqual(differences(golden, runCase(golden)), [], golden.name);
    }
  });
}

test("ties are drawn as Go draws them", () => {
  const recorded = JSON.parse(readFileSync(`${FOLDER}tie_draws_seed42.json`, "utf8")) as { readonly int31: number[] };
  assert.equal(recorded.int31.length, 512);
  const draws = tieBreaks(42);
  assert.deepEqual(
    recorded.int31.map(() => draws.int31()),
    recorded.int31,
  );
});

test("a case that expects something else is distinguished", () => {
  const [golden] = casesOf("prefix_weighted4.json");
  assert.ok(golden !== undefined);
  const run = runCase(golden);
  const { expected } = golden;
  const other = <T>(list: readonly T[], change: Partial<T>): T[] =>
    list.map((one, i) => (i === 7 ? { ...one, ...change } : one));
  const wrong: Partial<GoldenCase["expected"]>[] = [
    { perRequest: other(expected.perRequest, { ttft: 1 }) },
    { perRequest: other(expected.perRequest, { instance: 9 }) },
    { perRequest: other(expected.perRequest, { status: "timed_out" }) },
    { decisions: other(expected.decisions, { chosen: 9 }) },
    { decisions: other(expected.decisions, { cached_blocks: [1, 2, 3, 4] }) },
    { steps: [1, 2, 3, 4] },
    { aggregate: { ...expected.aggregate, e2e_mean_ms: 1 } },
  ];
  for (const change of wrong) {
    assert.notDeepEqual(
      differences({ ...golden, expected: { ...expected, ...change } }, run),
      [],
      JSON.stringify(Object.keys(change)),
    );
  }
});
