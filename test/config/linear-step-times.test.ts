import assert from "node:assert/strict";
import { test } from "node:test";
import { engineNames, loadEngine } from "#config/engine-file.ts";
import { engineDefaults } from "#engine/config.ts";
import { linearStepTimes } from "#config/linear-step-times.ts";

test("where an engine's step times are linear, they are read off exactly, with the gap between steps", () => {
  const times = linearStepTimes(
    engineDefaults({
      stepTime: {
        kind: "coefficients",
        baseMicros: 5_000,
        perPrefillTokenMicros: 30,
        perDecodeMicros: 25,
        perSequenceMicros: 0,
        perPrefillMicros: 0,
        perDecodeContextTokenMicros: 0.125,
        perPrefillPairMicros: 0,
      },
      stepGap: { baseMicros: 400, afterPrefillMicros: 0, perDecodeMicros: 5 },
      batchTokensMax: 4_096,
    }),
  )!;
  assert.ok(Math.abs(times.stepMicros - 5_400) < 1e-6, `${times.stepMicros}`);
  assert.ok(Math.abs(times.prefillTokenMicros - 30) < 1e-6);
  assert.ok(Math.abs(times.sequenceMicros - 30) < 1e-6);
  assert.ok(Math.abs(times.contextTokenMicros - 0.125) < 1e-9);
  assert.equal(times.stepTokensMax, 4_096);
});

test("the engines that come with gnomon have step times, the faster board the smaller ones", () => {
  const of = (name: string) => linearStepTimes(loadEngine(name))!;
  for (const name of engineNames()) {
    const times = of(name);
    for (const value of Object.values(times)) assert.ok(value >= 0 && Number.isFinite(value), `${name} ${value}`);
    assert.ok(times.prefillTokenMicros > 0.1, name);
  }
  const [h100, a100] = [of("h100-llama-3.1-8b"), of("a100-llama-3.1-8b")];
  assert.ok(h100.prefillTokenMicros < a100.prefillTokenMicros && h100.stepMicros < a100.stepMicros);
});

test("measured steps say nothing of others", () => {
  const stepTime = { kind: "measured", stepMicros: [1_000, 2_000] } as const;
  assert.equal(linearStepTimes(engineDefaults({ stepTime })), undefined);
});
