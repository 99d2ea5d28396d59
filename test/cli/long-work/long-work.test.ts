import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { calibrateCommand } from "#cli/calibrate/calibrate.ts";
import { doLongWork } from "#cli/long-work/long-work.ts";
import { rolloutCommand } from "#cli/rollout/rollout.ts";
import { tuneCommand } from "#cli/tune/tune.ts";
import { whatIfCommand } from "#cli/what-if/what-if.ts";
import { engineWith } from "#shadow/calibrate/parameters.ts";
import { engineDefaults } from "#engine/config.ts";
import { randomFor } from "#core/base/random.ts";
import { gnomon } from "../command-line.ts";
import { inProcess } from "../in-process.ts";
import { writeVllmRun } from "../calibrate/vllm-run-files.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-long-work-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const WORKLOAD = join(FOLDER, "workload.jsonl");
writeFileSync(WORKLOAD, workload(250));
const RUN = join(FOLDER, "run");
const TIMES = { delayMicros: 3000, baseMicros: 8000, perPrefillTokenMicros: 30, perDecodeMicros: 60 };
const ZEROS = { perPrefillMicros: 0, perDecodeContextTokenMicros: 0, perPrefillPairMicros: 0 };
writeVllmRun(RUN, engineWith(engineDefaults({ kvBlocks: 3000, sequencesMax: 32 }), { ...TIMES, ...ZEROS }), {
  requests: 200,
  gapMicros: 60_000,
  seed: 4,
});

function workload(requests: number): string {
  const random = randomFor(3, 1);
  let timestamp = 0;
  const lines = Array.from({ length: requests }, (_, i) => {
    timestamp += random.below(120);
    const first = 10 * (Math.floor(i / 9) + random.below(3));
    const hash_ids = [first, first + 1, first + 2, first + 3, 1000 + i];
    return JSON.stringify({ timestamp, input_length: 2100 + random.below(400), output_length: 20, hash_ids });
  });
  return `${lines.join("\n")}\n`;
}

const COMMANDS: readonly (readonly [name: string, ...argv: string[]])[] = [
  ["what-if", "what-if", WORKLOAD, "--profile", "lmetric,round-robin", "--step-error", "0.05", "--replicas", "6"],
  ["tune", "tune", WORKLOAD, "--in-force", "random", "--profile", "llm-d", "--trials", "4", "--replicas", "2"],
  ["rollout plan", "rollout", "plan", WORKLOAD, "--arm", "gnomon", "--arm", "lmetric", "--runs", "1"],
  ["calibrate", "calibrate", RUN, "--output", "-"],
];

const commands = () => [whatIfCommand(), tuneCommand(), rolloutCommand(), calibrateCommand()];

/** The command, interrupted at work: begun again and interrupted sooner where it was done by then. */
async function interruptedRun(t: TestContext, name: string, argv: readonly string[], written: readonly string[]) {
  // The others are at work for a second or more, this one for a few tenths of one.
  for (let millis = name === "calibrate" ? 100 : 200; millis > 5; millis /= 2) {
    const run = gnomon(t, argv);
    while (!/note: /.test(run.stderr())) {
      assert.equal(run.child.exitCode, null, run.stderr());
      await sleep(2);
    }
    await sleep(millis);
    run.child.kill("SIGINT");
    const { code, signal } = await run.exit;
    // The work may be done when the signal comes: nobody heeds it then, and it ends the process amid what is written.
    // A command that never heeds one is done however soon the signal comes.
    if (code !== 0 && signal !== "SIGINT") return { code, signal, stdout: run.stdout(), stderr: run.stderr() };
    for (const path of written) rmSync(path, { recursive: true, force: true });
  }
  throw new Error("it is done before it can be interrupted");
}

for (const [name, ...argv] of COMMANDS) {
  test(`${name}: interrupted, it ends with 130 and no file but finished results; again, it goes on and comes to the same`, async (t) => {
    const at = (file: string) => join(FOLDER, `${name.replace(" ", "-")}-${file}`);
    const cache = ["--cache", at("cache")];
    const cut = [...argv, ...cache, "--json", at("cut.json")];
    const { code, signal, stdout, stderr } = await interruptedRun(t, name, cut, [at("cache"), at("cut.json")]);
    assert.deepEqual([code, signal, stdout], [130, null, ""], stderr);
    assert.match(stderr, /gnomon: interrupted/);
    assert.deepEqual(
      readdirSync(FOLDER).filter((file) => file.includes("cut.json")),
      [],
    );
    const kept = existsSync(at("cache")) ? readdirSync(at("cache")) : [];
    assert.ok(kept.every((file) => file.endsWith(".result")));
    assert.equal(kept.length > 0, stderr.includes("the same command goes on from there"));

    for (const [file, flags] of [
      ["resumed.json", cache],
      ["alone.json", ["--no-cache"]],
    ] as const) {
      const { code, notes } = await inProcess(t, commands(), [...argv, ...flags, "--json", at(file)]);
      assert.equal(code, 0, notes);
    }
    const [resumed, alone] = [readFileSync(at("resumed.json"), "utf8"), readFileSync(at("alone.json"), "utf8")];
    assert.equal(resumed, alone);
  });
}

/** What is written to standard error meanwhile. */
async function noted(t: TestContext, work: () => Promise<void>): Promise<string> {
  let text = "";
  const mock = t.mock.method(process.stderr, "write", (chunk: string) => {
    text += chunk;
    return true;
  });
  await work();
  mock.mock.restore();
  return text;
}

test("off a terminal a line comes at each interval, with and without news, and none where the work is short", async (t) => {
  const lines = await noted(t, () =>
    doLongWork(
      { cache: false },
      async ({ progress }) => {
        await sleep(150);
        progress("3 of 9 simulations");
        await sleep(250);
      },
      100,
    ),
  );
  assert.match(lines, /^at work, 0 s\n(3 of 9 simulations, \d+ s\n){2,}$/);
  const none = await noted(t, () =>
    doLongWork({ cache: false }, async ({ progress }) => progress("1 of 1 simulations")),
  );
  assert.equal(none, "");
});

test("steps leave turns to signals and timers, and end where the work is stopped", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const result = await doLongWork({ cache: false }, ({ inTurns }) =>
    inTurns(
      (function* () {
        for (const until = performance.now() + 300; performance.now() < until;) yield;
        return "done";
      })(),
      "steps",
    ),
  );
  clearInterval(timer);
  assert.equal(result, "done");
  assert.ok(turns >= 2, `${turns}`);
});
