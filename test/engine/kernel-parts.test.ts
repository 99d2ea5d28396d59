import assert from "node:assert/strict";
import { test } from "node:test";
import { addDecode, addPrefill, emptyShape } from "#engine/step-time/batch-shape.ts";
import { exchangeMicros, rankExchangeMicros } from "#engine/step-time/board-exchange.ts";
import { activatedExperts, ExpertTime } from "#engine/step-time/expert-time.ts";
import { graphTokens } from "#engine/step-time/graph-tokens.ts";
import { createStepTime } from "#engine/step-time/create-step-time.ts";

test("steps are padded to the sizes of CUDA graphs, and beyond the last one not at all", () => {
  const sizes = (max: number) =>
    [1, 2, 3, 5, 9, 100, 256, 257, 500, 512, 513].map((tokens) => graphTokens(tokens, max));
  assert.deepEqual(sizes(512), [1, 2, 4, 8, 16, 104, 256, 272, 512, 512, 513]);
  assert.deepEqual(sizes(0), [1, 2, 3, 5, 9, 100, 256, 257, 500, 512, 513]);
  assert.equal(graphTokens(5, 6), 6, "no graph is greater than the greatest");
});

test("two sums a layer around a ring", () => {
  const exchange = { gpus: 4, bytesPerToken: 8000, gigabytesPerSecond: 10, hopMicros: 3 };
  assert.equal(exchangeMicros(exchange, 5, 100), 2 * 5 * 2 * 3 * (3 + (100 * 2000) / 10_000));
});

test("experts that tokens use: all of one token's, nearly all of many, and in between what drawing gives", () => {
  assert.equal(activatedExperts(128, 8, 1).toFixed(9), "8.000000000");
  assert.ok(activatedExperts(128, 8, 2) < 16 && activatedExperts(128, 8, 2) > 15);
  assert.ok(Math.abs(activatedExperts(128, 8, 1000) - 128) < 1e-6);
});

test("an expert's time is exact at what was measured and lies between for what was not", () => {
  const rows = [
    [1, 8, 50],
    [64, 8, 70],
    [64, 64, 400],
    [64, 128, 800],
    [512, 128, 900],
  ] as const;
  const experts = new ExpertTime({ count: 128, perToken: 8, rows });
  assert.ok(Math.abs(experts.micros(1) - 50) < 1e-9);
  const used = activatedExperts(128, 8, 64);
  assert.ok(Math.abs(experts.micros(64) - (400 + ((used - 64) / 64) * 400)) < 1e-9);
  for (let tokens = 1; tokens < 600; tokens++) assert.ok(experts.micros(tokens + 1) >= experts.micros(tokens));
});

test("ranks send all tokens but the neighbour's, and what nothing comes against goes at one direction's pace", () => {
  const both = { ranks: 2, bytesOut: 600, bytesBack: 400, gigabytesPerSecond: 10, hopMicros: 3 };
  const host = { ...both, oneWayGigabytesPerSecond: 15 };
  for (const exchange of [both, host]) {
    assert.equal(rankExchangeMicros(exchange, 4, [100, 100]), 4 * (2 * 3 + (100 * 1000) / 10_000));
    assert.equal(rankExchangeMicros(exchange, 4, [100, 40]), rankExchangeMicros(exchange, 4, [40, 100]));
  }
  assert.equal(rankExchangeMicros(both, 4, [100, 40]), rankExchangeMicros(both, 4, [100, 100]));
  assert.ok(Math.abs(rankExchangeMicros(host, 4, [100, 40]) - 4 * (6 + 4 + 60 / 15)) < 1e-9);
  // Around three boards each passes on what is not its neighbour's: the second one sends 120 of 180, and gets 150.
  assert.ok(Math.abs(rankExchangeMicros({ ...host, ranks: 3 }, 1, [90, 30, 60]) - (4 * 3 + 12 + 30 / 15)) < 1e-9);
});

test("a table of kernels with experts, an exchange and graphs is their sum", () => {
  const parts = { count: 4, perToken: 4, rows: [[1, 4, 11]] } as const;
  const exchange = { gpus: 2, bytesPerToken: 1000, gigabytesPerSecond: 1, hopMicros: 2 };
  const step = createStepTime({
    kind: "kernel-table",
    layers: 10,
    layer: [
      [1, 1],
      [101, 101],
    ],
    once: [[1, 7]],
    perSequence: [[1, 2]],
    attention: [[0, 0, 1, 100, 9]],
    experts: parts,
    exchange,
    graphTokensMax: 8,
  });
  const shape = emptyShape();
  for (let i = 0; i < 5; i++) addDecode(shape, 100);
  assert.equal(step.micros(shape), 10 * (8 + 11 + 9) + 7 + 2 + exchangeMicros(exchange, 10, 8));
});

test("roofline: a shared expert is computed for every token and read once", () => {
  const model = {
    layers: 1,
    hidden: 100,
    heads: 1,
    kvHeads: 1,
    intermediate: 50,
    bytesPerParameter: 2,
    mlpMatrices: 3,
  };
  const hardware = { tflopsPeak: 1, bandwidthTbs: 1, mfuPrefill: 1, mfuDecode: 1 };
  const micros = (sharedIntermediate: number, tokens: number) => {
    const experts = { count: 8, perToken: 2, sharedIntermediate };
    const step = createStepTime({ kind: "roofline", model: { ...model, experts }, hardware, tensorParallel: 1 });
    const shape = emptyShape();
    addPrefill(shape, 0, tokens);
    return step.micros(shape);
  };
  const read = (3 * 100 * 70 * 2) / 1e12;
  assert.ok(Math.abs(micros(70, 1) - micros(0, 1) - read * 1e6) < 1e-9, "one token waits for the weights");
  const computed = (2 * 3 * 100 * 70 * 5000) / 1e12;
  assert.ok(Math.abs(micros(70, 5000) - micros(0, 5000) - computed * 1e6) < 1e-6, "many are computed");
});
