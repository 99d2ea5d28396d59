import assert from "node:assert/strict";
import { test } from "node:test";
import { engineNames, engineOfParameters, engineParameters, loadEngine } from "#config/engine-file.ts";
import { sizedEngine } from "#cli/calibrate/engine-sizes.ts";
import { engineOfRun } from "#cli/what-if/what-if-engine.ts";
import type { WhatIfFlags } from "#cli/what-if/what-if-flags.ts";
import { engineDefaults } from "#engine/config.ts";
import { engineWith, parametersOf, parametersOfEngine } from "#shadow/calibrate/parameters.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "../../trace/line-encoder.ts";
import { runOn } from "../../shadow/calibrate/simulated-run.ts";

const TRUTH = engineWith(
  engineDefaults({ kvBlocks: 3000, sequencesMax: 32, asyncScheduling: true }),
  parametersOf(
    (name) =>
      ({ delayMicros: 2500, baseMicros: 8000, perPrefillTokenMicros: 30, perDecodeMicros: 60 })[name as string] ?? 0,
  ),
);
const flags = (engine: readonly string[] = []) => ({ engine, sizes: "trace" }) as unknown as WhatIfFlags;

test("every engine that comes with gnomon is the same after it stood in a trace's header", async () => {
  const run = runOn(TRUTH, { seed: 1, requests: 5 });
  for (const name of engineNames()) {
    const engine = loadEngine(name);
    const emulated = { engine: name, parameters: engineParameters(engine) };
    const line = new LineEncoder({ blockTokens: 16 }).header({ ...run.header, emulated });
    const { header } = new TraceDecoder(line);
    const chosen = await engineOfRun({ ...run, header }, flags());
    assert.deepEqual(chosen.engine, engine, name);
    assert.deepEqual([chosen.name, chosen.isGuess], [name, false]);
    assert.match(chosen.notes.join(), /as the trace's header states/);
  }
  const wrong = { engine: "x", parameters: { sequencesMax: 0 } };
  await assert.rejects(
    engineOfRun({ ...run, header: { ...run.header, emulated: wrong } }, flags()),
    /sequencesMax: .*header/,
  );
  assert.deepEqual(engineOfParameters({}, "nothing").engine, engineDefaults());
});

test("what --engine names wins over the header", async () => {
  const run = runOn(TRUTH, { seed: 1, requests: 5 });
  const emulated = { engine: "h100-llama-3.1-8b", parameters: engineParameters(loadEngine("h100-llama-3.1-8b")) };
  const chosen = await engineOfRun({ ...run, header: { ...run.header, emulated } }, flags(["a100-llama-3.1-8b"]));
  assert.deepEqual(chosen.engine, loadEngine("a100-llama-3.1-8b"));
});

test("a trace without its engines' settings is calibrated, and that is reported with its error", async () => {
  const chosen = await engineOfRun(runOn(TRUTH, { seed: 2, requests: 200 }), flags());
  assert.equal(chosen.isGuess, false);
  assert.ok(Math.abs(parametersOfEngine(chosen.engine)!.baseMicros / 8000 - 1) < 0.05);
  assert.match(chosen.notes.join(), /calibrated from this trace, since no --engine named one; .* held out, TTFT [-+]/);
});

test("a trace that cannot show its engine leads to a guess, which is called one, with the reasons", async () => {
  const chosen = await engineOfRun(runOn(TRUTH, { seed: 3, requests: 20 }), flags());
  assert.deepEqual([chosen.name, chosen.isGuess], ["emulated-default", true]);
  assert.match(
    chosen.notes.join("\n"),
    /does not show it:\n {2}.*\n.*emulated-default, which is a guess; name one with --engine/s,
  );
});

test("an engine took what it answered, however short the requests were that its file comes from", () => {
  const run = runOn(TRUTH, { seed: 4, requests: 30 });
  const lengths = run.workload.map(({ promptTokens, outputTokens }) => promptTokens + outputTokens);
  const longest = Math.max(...lengths);
  const base = { ...TRUTH, modelTokensMax: Math.floor(longest / 2) };
  const { engine, notes } = sizedEngine(base, run, flags(), false);
  assert.equal(engine.modelTokensMax, longest);
  assert.match(notes.join(), new RegExp(`modelTokensMax ${longest}: the longest that was answered`));
  const refused = run.observed.map((one, i) => (lengths[i] === longest ? { ...one, ok: false } : one));
  assert.ok(sizedEngine(base, { ...run, observed: refused }, flags(), false).engine.modelTokensMax < longest);
  const asked = sizedEngine(base, run, { sizes: "engine" }, false);
  assert.equal(asked.engine.modelTokensMax, base.modelTokensMax, "unless the engine's own are asked for");
  const stated = { ...run, header: { ...run.header, engine: { modelTokensMax: 4_096 } } };
  assert.equal(sizedEngine(base, stated, flags(), false).engine.modelTokensMax, 4_096);
});
