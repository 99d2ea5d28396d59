import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { questionDigest, TuneState } from "#cli/tune/tune-state.ts";
import { MEAN_E2E } from "../../shadow/tune/tune-case.ts";
import { caseSetting, caseWorkload, namedProfile } from "../../shadow/question/what-if-case.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-tune-state-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
const file = (name: string) => join(FOLDER, name);

test("two searches of the same question in one file keep what both found", () => {
  const [one, other] = [new TuneState(file("both"), "q"), new TuneState(file("both"), "q")];
  one.put("a", 1);
  other.put("b", 2);
  one.save();
  other.save();
  const again = new TuneState(file("both"), "q");
  assert.deepEqual([again.get("a"), again.get("b")], [1, 2]);
  assert.deepEqual(
    readdirSync(FOLDER).filter((name) => name.startsWith("both")),
    ["both"],
    "nothing half written is left",
  );
});

test("a file that became another question's meanwhile is left to it", () => {
  const [one, other] = [new TuneState(file("taken"), "q"), new TuneState(file("taken"), "r")];
  other.put("b", 2);
  other.save();
  one.put("a", 1);
  one.save();
  assert.deepEqual([one.isTaken, other.isTaken], [true, false]);
  assert.equal(new TuneState(file("taken"), "r").get("b"), 2);
  assert.throws(() => new TuneState(file("taken"), "q"), /--state: expected a file of the same trace/);
});

test("what a killed search had half written is in nobody's way", () => {
  const state = new TuneState(file("killed"), "q");
  state.put("a", 1);
  state.save();
  writeFileSync(`${file("killed")}.1.part`, readFileSync(file("killed"), "utf8").slice(0, 20));
  assert.equal(new TuneState(file("killed"), "q").get("a"), 1);
});

test("traffic of another model, with other times or under another profile is another question", () => {
  const workload = caseWorkload();
  const setting = caseSetting(workload);
  const inForce = namedProfile("gnomon");
  const observed = workload.map(({ outputTokens }) => ({
    endpoint: "a",
    ok: true,
    ttftMicros: 1_000,
    e2eMicros: 2_000,
    outputTokens,
    cachedTokens: 0,
    attempts: 1,
    retriedMicros: 0,
  }));
  const of = (traffic: Parameters<typeof questionDigest>[0]) => questionDigest(traffic, MEAN_E2E, 0.5);
  const plain = of({ setting, inForce, observed });
  assert.equal(of({ setting: caseSetting(caseWorkload()), inForce, observed }), plain);
  const renamed = workload.map((request) => ({ ...request, model: "other" }));
  const slower = observed.map((one) => ({ ...one, e2eMicros: 3_000 }));
  const others = [
    of({ setting: caseSetting(renamed), inForce, observed }),
    of({ setting, inForce, observed: slower }),
    of({ setting, inForce: namedProfile("round-robin"), observed }),
    of({ setting, inForce, observed: undefined }),
  ];
  assert.equal(new Set([plain, ...others]).size, 5);
});
