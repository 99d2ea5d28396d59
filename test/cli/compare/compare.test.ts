import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import { compareCommand } from "#cli/compare/compare.ts";
import { traceCommand } from "#cli/trace/trace.ts";
import { inProcess } from "../in-process.ts";
import { writeVllmRun } from "../calibrate/vllm-run-files.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-compare-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
let names = 0;
const fresh = (name = "") => join(FOLDER, `${names++}${name}`);

const gnomon = (t: TestContext, ...argv: string[]) => inProcess(t, [traceCommand(), compareCommand()], argv);

/** A folder of traces, one a policy; the slower the engine, the later in the list. */
async function liveRuns(t: TestContext, policies: readonly string[]): Promise<string> {
  const folder = fresh();
  mkdirSync(folder);
  for (const [i, policy] of policies.entries()) {
    const run = fresh();
    const stepTime = {
      kind: "coefficients",
      baseMicros: 5000 + 2000 * i,
      perPrefillTokenMicros: 30,
      perDecodeMicros: 50,
    } as const;
    writeVllmRun(run, engineDefaults({ stepTime }), { requests: 40, gapMicros: 100_000, seed: 1 });
    const { code, said } = await gnomon(t, "trace", "import", run, "-o", join(folder, policy));
    assert.equal(code, 0, said);
  }
  return folder;
}

function file(value: unknown, name = ".json"): string {
  const path = fresh(name);
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return path;
}

function answerOf(means: Readonly<Record<string, number>>): object {
  const candidates = Object.entries(means).map(([name, mean]) => {
    const all = { mean, p50: mean, p99: 2 * mean };
    return { name, hitRatio: 0.5, predicted: { ttftMicros: all, tpotMicros: all, e2eMicros: all } };
  });
  return { candidates };
}

test("live traces of several policies against an answer of what-if: ranks, and who was not simulated", async (t) => {
  const live = await liveRuns(t, ["quick", "middling", "slow"]);
  const asked = file(answerOf({ quick: 100, middling: 300, slow: 200, other: 1 }));
  const { code, out, notes, said } = await gnomon(t, "compare", live, asked, "--json");
  assert.equal(code, 0, said);
  assert.match(notes, /note: other was not run live/);
  const { figures, policies } = JSON.parse(out) as {
    policies: string[];
    figures: Record<string, { spearman: number; pairs: number; pairsPreserved: number; gaps: { policy: string }[] }>;
  };
  assert.deepEqual(policies.toSorted(), ["middling", "quick", "slow"]);
  const e2e = figures["e2eMean"]!;
  assert.deepEqual([e2e.spearman, e2e.pairs, e2e.pairsPreserved], [0.5, 3, 2]);
  assert.deepEqual(
    e2e.gaps.map(({ policy }) => policy),
    ["quick", "middling", "slow"],
  );
  const table = await gnomon(t, "compare", live, asked);
  assert.match(table.out, /3 policies, simulated against live/);
  assert.match(table.out, /2 of 3/);
});

test("one trace against its simulation has gaps and no ranks", async (t) => {
  const live = join(await liveRuns(t, ["any"]), "any");
  const { code, out, said } = await gnomon(t, "compare", live, file(answerOf({ gnomon: 100 })));
  assert.equal(code, 0, said);
  assert.match(out, /gnomon, simulated against live, times in ms: one policy, so no ranks/);
  assert.doesNotMatch(out, /Spearman/);
  const self = await gnomon(t, "compare", live, live, "--json");
  assert.match(self.notes, /any is a recorded trace, so these gaps are between two live runs/);
  const { figures } = JSON.parse(self.out) as { figures: Record<string, { gaps: { relative: number }[] }> };
  assert.ok(Object.values(figures).every(({ gaps }) => gaps[0]!.relative === 0));
});

test("results of BLIS are results like others", async (t) => {
  const live = join(await liveRuns(t, ["any"]), "any");
  const exported = fresh("gnomon.json");
  const { code, said } = await gnomon(t, "trace", "export", live, "-f", "blis-result", "-o", exported);
  assert.equal(code, 0, said);
  const folder = fresh();
  mkdirSync(folder);
  const { out } = await gnomon(t, "compare", file(answerOf({ x: 1 })), exported);
  assert.equal(out, "", "their policy is told by the file's name alone");
  const named = join(folder, "gnomon.json");
  const again = await gnomon(t, "trace", "export", live, "-f", "blis-result", "-o", named);
  assert.equal(again.code, 0, again.said);
  const compared = await gnomon(t, "compare", live, named, "--json");
  const { figures } = JSON.parse(compared.out) as { figures: Record<string, { gaps: { relative: number }[] }> };
  assert.ok(["ttftMean", "tpotMean", "e2eMean"].every((name) => Math.abs(figures[name]!.gaps[0]!.relative) < 1e-9));
});

test("what cannot be compared is reported with what is expected", async (t) => {
  const live = await liveRuns(t, ["quick", "slow"]);
  const asked = file(answerOf({ quick: 100, slow: 200 }));
  const empty = fresh();
  mkdirSync(empty);
  const twice = fresh();
  mkdirSync(twice);
  for (const name of ["a", "b"]) writeFileSync(join(twice, `${name}.json`), JSON.stringify(answerOf({ quick: 1 })));
  const torn = fresh(".ndjson.zst");
  writeFileSync(torn, "");
  for (const [argv, code, words] of [
    [["nowhere", asked], 2, /expected results, got nowhere, which is not there/],
    [[live, empty], 1, /expected results \(\*\.json\) or traces, got a folder without any/],
    [[live, twice], 1, /expected one result per policy, got two of quick/],
    [[live, file("{")], 1, /expected JSON, /],
    [[live, file({ some: 1 })], 1, /expected a report of drive --json, results of simulate/],
    [
      [live, file(answerOf({ other: 1 }))],
      1,
      /expected a policy or more .* only live: quick, slow; only simulated: other/,
    ],
    [[torn, asked], 1, /expected a trace, got nothing that could be read/],
    [[live], 2, /missing required argument 'simulated'/],
  ] as const) {
    const refused = await gnomon(t, "compare", ...argv);
    assert.match(refused.said, words, argv.join(" "));
    assert.equal(refused.code, code, argv.join(" "));
  }
});
