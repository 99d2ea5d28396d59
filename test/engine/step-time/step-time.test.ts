import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { fitLinear } from "#engine/fit/linear-fit.ts";
import { minimise } from "../../../bench/engine-vs-vllm/simplex.ts";
import { fitSteps, type StepSample } from "../../../bench/engine-vs-vllm/step-fit.ts";
import { AttentionGrid, type AttentionRow } from "#engine/step-time/attention-grid.ts";
import { addDecode, addPrefill, emptyShape } from "#engine/step-time/batch-shape.ts";
import { Curve } from "#engine/step-time/curve.ts";
import { createStepTime, type StepTimeSpec } from "#engine/step-time/create-step-time.ts";

const LLAMA_8B_H100 = {
  kind: "roofline",
  tensorParallel: 1,
  model: { layers: 32, hidden: 4096, heads: 32, kvHeads: 8, intermediate: 14336, bytesPerParameter: 2, mlpMatrices: 2 },
  hardware: { tflopsPeak: 989.5, bandwidthTbs: 3.35, mfuPrefill: 0.45, mfuDecode: 0.3 },
} as const satisfies StepTimeSpec;

test("the shape counts what a loop over tokens counts", () => {
  const shape = emptyShape();
  let pairs = 0;
  let whole = 0;
  for (const [start, tokens] of [
    [0, 7],
    [13, 1],
    [100, 33],
  ] as const) {
    addPrefill(shape, start, tokens, start + tokens + 5);
    for (let i = 0; i < tokens; i++) pairs += start + i;
    whole += tokens * (start + tokens + 5 + tokens / 2);
  }
  addDecode(shape, 50);
  addDecode(shape, 60);
  assert.deepEqual(shape, {
    prefillSequences: 3,
    prefillTokens: 41,
    prefillContextTokens: 113,
    prefillPairsTwice: 2 * pairs,
    prefillWholeTwice: 2 * whole,
    decodeSequences: 2,
    decodeContextTokens: 110,
    decodeContextMaxTokens: 60,
  });
});

test("an empty step takes no time, whatever the model", () => {
  assert.equal(createStepTime(LLAMA_8B_H100).micros(emptyShape()), 0);
  const coefficients = { kind: "coefficients", baseMicros: 5, perPrefillTokenMicros: 1, perDecodeMicros: 1 } as const;
  assert.equal(createStepTime(coefficients).micros(emptyShape()), 0);
});

test("roofline: weights bound a lone decode, compute bounds a long prefill, and halving over two GPUs halves both", () => {
  const step = createStepTime(LLAMA_8B_H100);
  const decode = emptyShape();
  addDecode(decode, 1000);
  const weights = 32 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 2 * 4096 * 14336) * 2;
  const kv = 2 * 32 * 1024 * 2 * 1001 + 32 * 4096 * 2;
  assert.ok(Math.abs(step.micros(decode) - ((weights + kv) / 3.35e12) * 1e6) < 1e-6);
  const prefill = emptyShape();
  addPrefill(prefill, 0, 2000);
  assert.ok(step.micros(prefill) > 2000 * 20);
  const two = createStepTime({ ...LLAMA_8B_H100, tensorParallel: 2 });
  assert.ok(Math.abs(two.micros(prefill) * 2 - step.micros(prefill)) < 1e-6);
  assert.ok(Math.abs(two.micros(decode) * 2 - step.micros(decode)) < (kv / 3.35e12) * 1e6);
});

test("mixture of experts: one token loads its own experts, many load all", () => {
  const dense = createStepTime(LLAMA_8B_H100);
  const step = createStepTime({
    ...LLAMA_8B_H100,
    model: { ...LLAMA_8B_H100.model, experts: { count: 8, perToken: 2 } },
  });
  const mlp = ((32 * 2 * 4096 * 14336 * 2) / 3.35e12) * 1e6;
  const micros = (decodes: number) => {
    const shape = emptyShape();
    for (let i = 0; i < decodes; i++) addDecode(shape, 0);
    return (step.micros(shape) - dense.micros(shape)) / mlp;
  };
  assert.ok(Math.abs(micros(1) - 1) < 1e-9);
  assert.ok(Math.abs(micros(64) - 7) < 1e-3);
});

test("a curve goes through its points, holds below the first and goes on beyond the last", () => {
  const curve = new Curve([
    [4, 40],
    [1, 10],
    [2, 30],
  ]);
  assert.deepEqual(
    [0, 1, 1.5, 2, 3, 4, 6].map((x) => curve.at(x)),
    [10, 10, 20, 30, 35, 40, 50],
  );
});

test("an attention grid is exact at its points and on every multilinear function, with coordinates to spare", () => {
  const time = (a: number, b: number, c: number, d: number) => 3 + a + 2 * b + c * d + a * c;
  const rows: AttentionRow[] = [];
  for (const a of [0, 16, 64]) {
    for (const b of [0, 32])
      for (const c of [1, 8, 32]) for (const d of [16, 128]) rows.push([a, b, c, d, time(a, b, c, d)]);
  }
  // Measured at a few points of another grid: too few to be of use.
  rows.push([24, 0, 1, 16, 1e9], [24, 32, 8, 128, 1e9]);
  const grid = new AttentionGrid(rows);
  const random = randomFor(1, 4);
  for (let i = 0; i < 200; i++) {
    const [a, b, c, d] = [64 * random.next(), 32 * random.next(), 1 + 40 * random.next(), 16 + 200 * random.next()];
    assert.ok(Math.abs(grid.at(a, b, c, d) - time(a, b, c, d)) < 1e-9 * time(a, b, c, d));
  }
});

test("kernels put together: dense by tokens, attention by what is in the batch, the head by sequences", () => {
  const step = createStepTime({
    kind: "kernel-table",
    layers: 10,
    layer: [
      [1, 5],
      [1001, 1005],
    ],
    once: [[1, 7]],
    perSequence: [
      [1, 2],
      [11, 12],
    ],
    attention: [
      [100, 0, 0, 0, 50],
      [100, 100, 0, 0, 60],
      [0, 0, 4, 100, 9],
      [100, 0, 4, 100, 70],
      [100, 100, 4, 100, 80],
    ],
    baseMicros: 1000,
    perTokenMicros: 1,
  });
  const prefill = emptyShape();
  addPrefill(prefill, 0, 100);
  assert.equal(step.micros(prefill), 1000 + 100 + 10 * (104 + 50) + 7 + 2);
  const decodes = emptyShape();
  for (let i = 0; i < 4; i++) addDecode(decodes, 100);
  assert.equal(step.micros(decodes), 1000 + 4 + 10 * (8 + 9) + 7 + 5);
  const mixed = emptyShape();
  for (let i = 0; i < 4; i++) addDecode(mixed, 100);
  addPrefill(mixed, 50.5, 100);
  assert.ok(Math.abs(step.micros(mixed) - (1000 + 104 + 10 * (108 + 75) + 7 + 6)) < 10);
});

test("a fit finds the coefficients again through noise and pauses, none below 0", () => {
  const random = randomFor(7, 5);
  const truth = { base: 9000, token: 30, decode: 450 };
  const samples: StepSample[] = Array.from({ length: 3000 }, (_, i) => {
    const shape = emptyShape();
    if (random.below(10) === 0) addPrefill(shape, 0, 1 + random.below(1000));
    for (let decodes = random.below(12); decodes > 0; decodes--) addDecode(shape, random.below(2000));
    const micros = truth.base + truth.token * shape.prefillTokens + truth.decode * shape.decodeSequences;
    const pause = i % 700 === 0 ? 400_000 : 0;
    return { shape, micros: micros * (0.95 + 0.1 * random.next()) + pause };
  });
  const { stepTime, kept } = fitSteps(samples);
  assert.ok(kept >= 1 - 6 / samples.length && kept < 1, `kept ${kept}`);
  assert.ok(Math.abs(stepTime.baseMicros / truth.base - 1) < 0.01);
  assert.ok(Math.abs(stepTime.perPrefillTokenMicros / truth.token - 1) < 0.05);
  assert.ok(Math.abs(stepTime.perDecodeMicros / truth.decode - 1) < 0.02);
  const falling = fitLinear(
    [
      [1, 1],
      [1, 2],
      [1, 3],
    ],
    [9, 8, 7],
    "equal",
  );
  assert.deepEqual(falling.coefficients, [8, 0]);
});

test("the simplex finds a valley, and the edge where the valley lies beyond 0", () => {
  const [x = 0, y = 0] = minimise(([a = 0, b = 0]) => (a - 3) ** 2 + 10 * (b - a) ** 2, [1, 1], 200);
  assert.ok(Math.abs(x - 3) < 1e-3 && Math.abs(y - 3) < 1e-3, `${x}, ${y}`);
  const [edge = 1] = minimise(([a = 0]) => (a + 2) ** 2, [5], 60);
  assert.ok(edge < 1e-3, `${edge}`);
});

test("the trained model gives the peer's figures for three prefills beside five decodes", () => {
  const shape = emptyShape();
  for (let i = 0; i < 3; i++) addPrefill(shape, 0, 128, 128);
  for (let i = 0; i < 5; i++) addDecode(shape, 266);
  // BLIS's own test pins these four; coefficients and hardware are those of its defaults.
  const beta = [0.152128, 0, 1.36252915, 0.752037, 32.09546717, 4.41684444, 126.024825, 481.8613888, 0, 1.94710771];
  for (const [tensorParallel, micros] of [
    [1, 7797],
    [2, 4538],
    [4, 2909],
    [8, 2094],
  ] as const) {
    const { model } = LLAMA_8B_H100;
    const hardware = { tflopsPeak: 989, bandwidthTbs: 3.35 };
    const stepTime = createStepTime({ kind: "trained-physics", tensorParallel, model, hardware, beta });
    assert.equal(Math.trunc(stepTime.micros(shape)), micros);
  }
});
