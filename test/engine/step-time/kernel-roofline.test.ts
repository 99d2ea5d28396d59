import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { achievedBy } from "#engine/achieved.ts";
import { HARDWARE } from "#engine/hardware.ts";
import { addDecode, addPrefill, type BatchShape, emptyShape } from "#engine/step-time/batch-shape.ts";
import { KernelRooflineStepTime, type KernelRooflineSpec } from "#engine/step-time/kernel-roofline.ts";
import type { ModelShape } from "#engine/step-time/model-shape.ts";

const LLAMA_8B: ModelShape = {
  layers: 32,
  hidden: 4096,
  heads: 32,
  kvHeads: 8,
  intermediate: 14_336,
  bytesPerParameter: 2,
  mlpMatrices: 3,
};
const MIXTURE: ModelShape = { ...LLAMA_8B, experts: { count: 8, perToken: 2 } };
const LATENT: ModelShape = {
  ...MIXTURE,
  latent: { queryRank: 1536, keyRank: 512, plainSize: 128, rotarySize: 64, valueSize: 128 },
  denseLayers: { count: 3, intermediate: 18_432 },
};

function stepOf(changes: Partial<KernelRooflineSpec> = {}): KernelRooflineStepTime {
  const { memoryBytes: _m, generation, mfuPrefill: _p, mfuDecode: _d, ...board } = HARDWARE["H100"]!;
  return new KernelRooflineStepTime({
    kind: "kernel-roofline",
    model: LLAMA_8B,
    vocabulary: 128_256,
    board,
    achieved: achievedBy(generation),
    tensorParallel: 1,
    graphTokensMax: 512,
    ...changes,
  });
}

function decodes(count: number, context: number): BatchShape {
  const shape = emptyShape();
  for (let i = 0; i < count; i++) addDecode(shape, context);
  return shape;
}

test("no step takes less than reading the weights, nor less than its arithmetic at the peak", () => {
  const weights = 32 * (4096 * 128 * 2 * 40 + 3 * 4096 * 14_336);
  assert.ok(stepOf().micros(decodes(1, 10)) > (weights * 2) / 3.35e6);
  const prefill = emptyShape();
  addPrefill(prefill, 0, 8000);
  const peak = (2 * weights * 8000) / 989.5e6;
  assert.ok(stepOf().micros(prefill) > peak && stepOf().micros(prefill) < 3 * peak);
  assert.equal(stepOf().micros(emptyShape()), 0);
});

test("more in a step never makes it shorter, of any model, on any board", () => {
  const random = randomFor(5, 1);
  for (const board of Object.values(HARDWARE)) {
    for (const model of [LLAMA_8B, MIXTURE, LATENT, { ...LLAMA_8B, window: { layers: 16, tokens: 1024 } }]) {
      const step = stepOf({
        model,
        board,
        achieved: achievedBy(board.generation),
        tensorParallel: 1 + random.below(8),
      });
      const shape = emptyShape();
      let before = 0;
      for (let i = 0; i < 40; i++) {
        if (random.below(3) === 0) addPrefill(shape, random.below(4000), 1 + random.below(600));
        else addDecode(shape, random.below(8000));
        const micros = step.micros(shape);
        assert.ok(Number.isFinite(micros) && micros >= before, `${micros} after ${before}`);
        before = micros;
      }
    }
  }
});

test("a mixture reads the experts that a batch touches: one token its own, many all", () => {
  const { expertBandwidth, bandwidth, expertLayerMicros } = achievedBy("hopper");
  const expert = (32 * 3 * 4096 * 14_336 * 2) / (3.35e6 * bandwidth * expertBandwidth);
  const dense = stepOf({ model: { ...LLAMA_8B, intermediate: 1 } });
  const mixed = stepOf({ model: MIXTURE });
  const experts = (count: number) =>
    (mixed.micros(decodes(count, 0)) - dense.micros(decodes(count, 0)) - 32 * expertLayerMicros) / expert;
  assert.ok(Math.abs(experts(1) - 2) < 0.02);
  assert.ok(Math.abs(experts(64) - 8) < 0.3);
});

test("narrow weights are read sooner; they are multiplied sooner only where activations are narrow too", () => {
  const prefill = emptyShape();
  addPrefill(prefill, 0, 8000);
  const one = decodes(1, 100);
  const wide = stepOf();
  const kept = stepOf({ model: { ...LLAMA_8B, weightBytes: 1 } });
  const narrow = stepOf({ model: { ...LLAMA_8B, weightBytes: 1, narrowMultiply: true } });
  assert.ok(kept.micros(one) < 0.75 * wide.micros(one));
  assert.ok(kept.micros(prefill) > 0.95 * wide.micros(prefill));
  assert.ok(narrow.micros(prefill) < 0.65 * wide.micros(prefill));
  const cache = stepOf({ model: { ...LLAMA_8B, kvBytes: 1 } });
  const long = decodes(100, 8000);
  assert.ok(cache.micros(long) < 0.65 * wide.micros(long));
});

test("latent attention takes its time in each layer, whatever the batch; narrow arithmetic has its own share", () => {
  const achieved = achievedBy("hopper");
  for (const batch of [decodes(1, 100), decodes(64, 900)]) {
    const micros = (latentLayerMicros: number) =>
      stepOf({ model: LATENT, achieved: { ...achieved, latentLayerMicros } }).micros(batch);
    assert.ok(Math.abs(micros(100) - micros(0) - 32 * 100) < 1e-6);
    assert.equal(stepOf({ achieved: { ...achieved, latentLayerMicros: 9 } }).micros(batch), stepOf().micros(batch));
  }
  const prefill = emptyShape();
  addPrefill(prefill, 0, 8000);
  const narrow = { ...LLAMA_8B, weightBytes: 1, narrowMultiply: true };
  const micros = (model: ModelShape, narrowCompute: number) =>
    stepOf({ model, achieved: { ...achieved, narrowCompute } }).micros(prefill);
  assert.equal(micros(LLAMA_8B, 0.1), stepOf().micros(prefill));
  assert.equal(micros(narrow, achieved.compute), stepOf({ model: narrow }).micros(prefill));
  assert.ok(micros(narrow, achieved.compute / 4) > 2 * micros(narrow, achieved.compute));
});

test("boards share the work but not what each step takes anyhow; without graphs a step takes longer", () => {
  const batch = decodes(32, 500);
  const [one, two, eight] = [1, 2, 8].map((tensorParallel) => stepOf({ tensorParallel }).micros(batch)) as [
    number,
    number,
    number,
  ];
  assert.ok(two < one && two > one / 2 && eight < two && eight > one / 8);
  assert.ok(stepOf({ graphTokensMax: 0 }).micros(batch) > one);
  const compressed = (tensorParallel: number) => {
    const step = stepOf({ model: LATENT, tensorParallel });
    return step.micros(decodes(8, 9000)) - step.micros(decodes(8, 1000));
  };
  // A compressed state is on every board.
  assert.ok(Math.abs(compressed(8) / compressed(1) - 1) < 1e-9);
});

test("layers that attend a window read no more than it, the others the whole context", () => {
  const whole = stepOf();
  const half = stepOf({ model: { ...LLAMA_8B, window: { layers: 16, tokens: 1024 } } });
  const growth = (step: KernelRooflineStepTime, from: number, to: number) =>
    step.micros(decodes(20, to)) - step.micros(decodes(20, from));
  assert.ok(Math.abs(growth(half, 100, 900) / growth(whole, 100, 900) - 1) < 1e-9);
  assert.ok(Math.abs(growth(half, 2000, 6000) / growth(whole, 2000, 6000) - 0.5) < 1e-9);
});
