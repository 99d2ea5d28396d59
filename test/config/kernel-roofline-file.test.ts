import assert from "node:assert/strict";
import { test } from "node:test";
import { engineOfParameters, engineParameters } from "#config/engine-file.ts";
import { HARDWARE } from "#engine/hardware.ts";
import { modelledEngine } from "#engine/modelled-engine.ts";
import { addDecode, addPrefill, emptyShape } from "#engine/step-time/batch-shape.ts";
import { createStepTime, type StepTimeSpec } from "#engine/step-time/create-step-time.ts";
import { readHuggingFaceModel } from "#engine/step-time/hugging-face.ts";

const CONFIG = {
  model_type: "deepseek_v3",
  hidden_act: "silu",
  hidden_size: 2048,
  intermediate_size: 10_944,
  num_attention_heads: 16,
  num_hidden_layers: 27,
  num_key_value_heads: 16,
  vocab_size: 102_400,
  kv_lora_rank: 512,
  first_k_dense_replace: 1,
  n_routed_experts: 64,
  n_shared_experts: 2,
  num_experts_per_tok: 6,
  moe_intermediate_size: 1408,
  torch_dtype: "bfloat16",
  quantization_config: { quant_method: "fp8" },
};

test("an engine from a model's config is the same after it was written as a file", () => {
  const model = readHuggingFaceModel(CONFIG);
  assert.ok(typeof model !== "string");
  for (const board of Object.values(HARDWARE)) {
    const engine = modelledEngine(model, board, { tensorParallel: 2, utilization: 0.9 });
    assert.deepEqual(engineOfParameters(engineParameters(engine), "file").engine, { ...engine, tier: undefined });
  }
});

test("trained-physics is a kind that a file can name, of dense models and of mixtures", () => {
  const beta = [0.152128, 0, 1.36252915, 0.752037, 32.09546717, 4.41684444, 126.024825, 481.8613888, 0, 1.94710771];
  const dense = {
    layers: 32,
    hidden: 4096,
    heads: 32,
    kvHeads: 8,
    intermediate: 14_336,
    bytesPerParameter: 2,
    mlpMatrices: 3,
  };
  const spec = (model: object) => ({
    kind: "trained-physics",
    model,
    hardware: { tflopsPeak: 989.5, bandwidthTbs: 3.35 },
    tensorParallel: 1,
    beta,
  });
  const loaded = (model: object): StepTimeSpec => engineOfParameters({ stepTime: spec(model) }, "file").engine.stepTime;
  const shape = emptyShape();
  for (let i = 0; i < 8; i++) addDecode(shape, 500);
  addPrefill(shape, 0, 200);
  const micros = (model: object) => createStepTime(loaded(model)).micros(shape);
  assert.ok(micros(dense) > 5_000 && micros(dense) < 15_000);
  // All experts are read, whatever the step touches; a token computes with its own alone.
  const experts = (count: number, perToken: number) => micros({ ...dense, experts: { count, perToken } });
  const read = (32 * 3 * 4096 * 14_336 * 2 * 1.36252915) / 3.35e6;
  assert.ok(Math.abs((experts(8, 2) - experts(4, 2)) / (4 * read) - 1) < 1e-9);
  assert.equal(experts(1, 1), micros(dense));
  // Layers without experts among others: those with them have their own coefficient.
  const some = { ...dense, experts: { count: 1, perToken: 1 }, denseLayers: { count: 12, intermediate: 14_336 } };
  assert.ok(Math.abs(micros(some) - micros(dense) - 20 * beta[7]!) < 1e-6);
  const latent = { queryRank: 0, keyRank: 512, plainSize: 128, rotarySize: 64, valueSize: 128 };
  assert.throws(() => loaded({ ...dense, latent }), /latent/);
  const roofline = (model: object) => {
    const { beta: _beta, hardware, ...rest } = spec(model);
    const shares = { mfuPrefill: 0.45, mfuDecode: 0.3 };
    return engineOfParameters(
      { stepTime: { ...rest, kind: "roofline", hardware: { ...hardware, ...shares } } },
      "file",
    );
  };
  assert.equal(roofline(dense).engine.stepTime.kind, "roofline");
  assert.throws(() => roofline({ ...dense, latent }), /latent/);
});
