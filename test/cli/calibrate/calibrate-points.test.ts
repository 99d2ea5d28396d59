import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { calibrateCommand } from "#cli/calibrate/calibrate.ts";
import { loadEngine } from "#config/engine-file.ts";
import { startEmulator } from "#emulator/server.ts";
import { engineDefaults } from "#engine/config.ts";
import type { CoefficientSpec } from "#engine/step-time/coefficients.ts";
import { replaySteady } from "#shadow/calibrate/steady-replay.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-points-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const STEP_TIME: CoefficientSpec = {
  kind: "coefficients",
  baseMicros: 6_000,
  perPrefillTokenMicros: 60,
  perDecodeMicros: 300,
  perDecodeContextTokenMicros: 0.5,
  perPrefillPairMicros: 0,
};
const ENGINE = engineDefaults({
  kvBlocks: 4_000,
  sequencesMax: 16,
  modelTokensMax: 3_000,
  stepTime: STEP_TIME,
  queueDelay: { baseMicros: 4_000, perPromptTokenMicros: 0 },
  asyncScheduling: true,
});

const gnomon = (t: TestContext, ...argv: string[]) => inProcess(t, [calibrateCommand()], ["calibrate", ...argv]);

/** A result as `vllm bench serve --save-result` writes it, of this engine. */
function benchResult(users: number, requests: number, promptTokens: number, outputTokens: number): object {
  const load = { kind: "users", count: users, requests } as const;
  const times = replaySteady(ENGINE, load, (text) => ({ promptTokens, outputTokens, text }), 0);
  return {
    backend: "vllm",
    model_id: "m",
    request_rate: "inf",
    max_concurrency: users,
    completed: requests,
    total_input_tokens: requests * promptTokens,
    total_output_tokens: requests * outputTokens,
    mean_ttft_ms: times.ttftMicros / 1000,
    mean_tpot_ms: times.tpotMicros / 1000,
  };
}

function fileWith(name: string, content: unknown): string {
  const file = join(FOLDER, name);
  writeFileSync(file, JSON.stringify(content));
  return file;
}

test("results of vllm bench serve, a file each or a list of them, make an engine that has their coefficients", async (t) => {
  const list = fileWith("sweep.json", [
    benchResult(1, 4, 100, 60),
    benchResult(1, 4, 1_000, 60),
    benchResult(1, 4, 2_500, 60),
  ]);
  const many = fileWith("many.json", benchResult(16, 64, 400, 80));
  const output = join(FOLDER, "engine.yaml");
  const sizes = ["--kv-blocks", "4000", "--sequences-max", "16", "--model-tokens-max", "3000"];
  const { code, said } = await gnomon(t, "--from-bench", list, "--from-bench", many, ...sizes, "-o", output);
  assert.equal(code, 0, said);
  const { stepTime, queueDelay } = loadEngine(output);
  assert.ok(stepTime.kind === "coefficients");
  for (const [found, real] of [
    [stepTime.baseMicros, 6_000],
    [stepTime.perPrefillTokenMicros, 60],
    [stepTime.perDecodeMicros, 300],
    [stepTime.perDecodeContextTokenMicros, 0.5],
    [queueDelay.baseMicros, 4_000],
  ] as const) {
    assert.ok(Math.abs(found! / real - 1) < 0.05, `${found} for ${real}`);
  }
  assert.match(readFileSync(output, "utf8"), /Measured error on those, at most: TTFT/);
});

test("what cannot be fitted is refused, by file and key", async (t) => {
  const one = fileWith("one.json", benchResult(1, 4, 100, 60));
  const rate = fileWith("rate.json", { ...benchResult(1, 4, 100, 60), request_rate: 4 });
  const empty = fileWith("empty.json", { request_rate: "inf" });
  for (const [flags, words] of [
    [[], /expected one of a trace, --from-bench, --from-kernels and --live, got 0/],
    [["--from-bench", one, "--live", "http://127.0.0.1:1"], /got 2/],
    [["--from-bench", one], /two numbers of users, or of two prompt lengths, got 1/],
    [["--from-bench", rate], /rate\.json: request_rate: expected inf/],
    [["--from-bench", empty], /empty\.json: completed: expected a number above 0/],
    [["--from-bench", "absent.json"], /expected a result of vllm bench serve, got absent\.json/],
    [["--live", "ftp://x"], /--live: expected a URL/],
    [["--live", "http://127.0.0.1:1"], /127\.0\.0\.1:1\/v1\/models: expected an answer/],
  ] as const) {
    const { code, said } = await gnomon(t, ...flags);
    assert.notEqual(code, 0);
    assert.match(said, words);
  }
});

test("a running engine is measured, and the file that comes of it predicts another load of that engine", async (t) => {
  const emulator = await startEmulator({
    host: "127.0.0.1",
    port: 0,
    model: "m",
    engine: ENGINE,
    timeScale: 1,
    seed: 1,
    apiKey: "sesame",
  });
  t.after(() => emulator.close());
  const output = join(FOLDER, "live.yaml");
  const live = ["--live", emulator.url, "--live-seconds", "35", "--sequences-max", "16", "-o", output];
  const shut = await gnomon(t, ...live);
  assert.equal(shut.code, 1);
  assert.match(shut.said, /v1\/models: expected an answer, got status 401/);
  const unset = await gnomon(t, ...live, "--api-key-env", "TEST_LIVE_KEY");
  assert.match(unset.said, /--api-key-env: expected the name of a variable that is set, got TEST_LIVE_KEY/);
  process.env["TEST_LIVE_KEY"] = "sesame";
  t.after(() => delete process.env["TEST_LIVE_KEY"]);
  const { code, said, notes } = await gnomon(t, ...live, "--api-key-env", "TEST_LIVE_KEY");
  assert.equal(code, 0, `${said} ${notes}`);
  assert.doesNotMatch(said + notes + readFileSync(output, "utf8"), /sesame/);
  const fitted = loadEngine(output);
  assert.deepEqual([fitted.kvBlocks, fitted.blockTokens, fitted.modelTokensMax], [4_000, 16, 3_000]);
  const load = { kind: "users", count: 8, requests: 40 } as const;
  const request = (text: number) => ({ promptTokens: 700, outputTokens: 100, text });
  const real = replaySteady(ENGINE, load, request, 0);
  const predicted = replaySteady(fitted, load, request, 0);
  // The emulator and its client share a processor with whatever else runs here.
  const off = predicted.tpotMicros / real.tpotMicros;
  assert.ok(off > 0.95 && off < 1.5, `${off}\n${notes}`);
});
