import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { whatIfCommand } from "#cli/what-if/what-if.ts";
import { type ScreenOptions, whatIfScreen } from "#cli/what-if/what-if-screen.ts";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-what-if-screen-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
const WORKLOAD = join(FOLDER, "workload.jsonl");
const random = randomFor(5, 1);
const lines = Array.from({ length: 60 }, (_, i) => {
  const [input_length, output_length] = [600 + random.below(400), 5 + random.below(60)];
  return JSON.stringify({ timestamp: 60 * i, input_length, output_length, hash_ids: [random.below(6), 1000 + i] });
});
writeFileSync(WORKLOAD, `${lines.join("\n")}\n`);

const PROFILES = ["round-robin", "llm-d", "lmetric", "least-loaded"].flatMap((name) => ["--profile", name]);
const SCENARIOS = ["--endpoints", "2,3,4", "--rate-scale", "1,2", "--lose", "endpoint_0@1"];

async function answerTo(t: TestContext, ...flags: string[]): Promise<WhatIfAnswer> {
  const { out, said } = await inProcess(
    t,
    [whatIfCommand()],
    ["what-if", WORKLOAD, "--threads", "1", "--json", ...flags],
  );
  assert.notEqual(out, "", said);
  return JSON.parse(out) as WhatIfAnswer;
}

const BESIDE = ["note: gnomon: gauges every 1000 ms, 5 ms late (gnomon, scrape.intervalMillis)", "60 requests in 1 s"];

function screen(answer: WhatIfAnswer, rows: number, columns: number, rest: Partial<ScreenOptions> = {}): string[] {
  return whatIfScreen(answer, { terminal: { rows, columns }, beside: BESIDE, ...rest })
    .trimEnd()
    .split("\n");
}

test("the answer and what stands beside it fit the terminal, however much was asked", async (t) => {
  const much = await answerTo(t, ...PROFILES, ...SCENARIOS, "--step-error", "0.05", "--replicas", "3");
  const little = await answerTo(
    t,
    "--profile",
    "round-robin",
    "--endpoints",
    "2",
    "--step-error",
    "0.05",
    "--replicas",
    "3",
  );
  assert.ok(much.candidates.length >= 20, String(much.candidates.length));
  for (const answer of [much, little]) {
    for (const [rows, columns] of [
      [24, 80],
      [30, 100],
      [40, 100],
      [200, 300],
    ] as const) {
      const shown = screen(answer, rows, columns, { objective: "ttft-p99" });
      assert.ok(shown.length + BESIDE.length <= Math.min(rows, 40), shown.join("\n"));
      for (const line of shown) assert.ok(line.length <= Math.min(columns, 100), line);
      assert.ok(
        shown.some((line) => line.startsWith("gnomon  ")),
        "the profile in force is shown",
      );
    }
  }
  assert.match(screen(much, 24, 80).slice(-2).join(" "), /\d+ more candidates, intervals/);
  assert.match(screen(little, 40, 100).join("\n"), /\n {2}90 %: TTFT [\d.]+ to [\d.]+, TPOT /);
});

test("what is left out is named beside --all, with the regret that was asked for", async (t) => {
  const answer = await answerTo(t, "--profile", "round-robin", "--regret", "2");
  assert.match(screen(answer, 40, 100).at(-1)!, /^Also with --all, .*regret, placement/);
});

test("the first sentence answers the objective, and the best candidate by it comes first", async (t) => {
  const answer = await answerTo(t, ...PROFILES, "--endpoints", "2,3", "--slo", "*:30::");
  for (const objective of ["tpot-p99", "goodput", "e2e-mean"] as const) {
    const shown = screen(answer, 40, 80, { objective });
    assert.match(shown.slice(0, 2).join(" "), /^gnomon stays best: |^[\w-]+ (?:may be|is) better: /);
    const head = shown.findIndex((line) => line.startsWith("profile "));
    const first = shown[head + 1]!.split(" ")[0];
    const values = answer.candidates
      .filter(({ scenario }) => scenario === "")
      .map(({ name, goodput, predicted: { tpotMicros, e2eMicros } }) => {
        if (objective === "goodput") return { name, loss: 1 - goodput! };
        return { name, loss: objective === "tpot-p99" ? tpotMicros!.p99 : e2eMicros!.mean };
      });
    const least = Math.min(...values.map(({ loss }) => loss));
    assert.ok(
      values.some(({ name, loss }) => name === first && loss === least),
      `${objective}: ${first}`,
    );
    assert.match(`${shown[head - 1]}${shown[head]}`, objective === "goodput" ? /within/ : /TTFT/);
  }
});
