import assert from "node:assert/strict";
import { test } from "node:test";
import { HARDWARE } from "#engine/hardware.ts";
import { kvBlocksThatFit, weightBytes } from "#engine/kv-capacity.ts";
import { type ModelConfig, readHuggingFaceModel } from "#engine/step-time/hugging-face.ts";
import { kvBytesPerToken } from "#engine/step-time/model-shape.ts";

const LLAMA_8B = {
  hidden_act: "silu",
  hidden_size: 4096,
  intermediate_size: 14336,
  max_position_embeddings: 131072,
  num_attention_heads: 32,
  num_hidden_layers: 32,
  num_key_value_heads: 8,
  tie_word_embeddings: false,
  torch_dtype: "bfloat16",
  vocab_size: 128256,
};

function modelOf(config: unknown): ModelConfig {
  const model = readHuggingFaceModel(config);
  assert.ok(typeof model !== "string");
  return model;
}

test("Llama 3.1 8B has its 8.03 billion parameters, and a 4090 the blocks that vLLM found", () => {
  const model = modelOf(LLAMA_8B);
  assert.ok(Math.abs(weightBytes(model) / 2 / 8.03e9 - 1) < 0.001);
  const card = HARDWARE["RTX-4090"];
  assert.ok(card !== undefined);
  const blocks = kvBlocksThatFit({
    ...model,
    memoryBytes: card.memoryBytes,
    utilization: 0.9,
    tensorParallel: 1,
    blockTokens: 16,
  });
  assert.ok(Math.abs(blocks / 2588 - 1) < 0.01, `${blocks} blocks`);
});

test("two GPUs hold more than twice as many blocks, a GPU too small none", () => {
  const model = { ...modelOf(LLAMA_8B), utilization: 0.9, blockTokens: 16 };
  const one = kvBlocksThatFit({ ...model, memoryBytes: 80e9, tensorParallel: 1 });
  const two = kvBlocksThatFit({ ...model, memoryBytes: 80e9, tensorParallel: 2 });
  assert.ok(two > 2 * one);
  assert.equal(kvBlocksThatFit({ ...model, memoryBytes: 16e9, tensorParallel: 1 }), 0);
});

test("heads of another size, experts, and the language model of a multimodal one are read", () => {
  const qwen = modelOf({ ...LLAMA_8B, hidden_size: 5120, num_attention_heads: 64, head_dim: 128 });
  assert.equal(qwen.shape.headSize, 128);
  const mixture = modelOf({
    text_config: { ...LLAMA_8B, num_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 768 },
  });
  assert.deepEqual(mixture.shape.experts, { count: 8, perToken: 2 });
  assert.equal(mixture.shape.intermediate, 768);
});

test("shared experts are read as a width, or as so many more of the usual one, and are weights like the others", () => {
  const mixture = { ...LLAMA_8B, num_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 768 };
  const wide = modelOf({ ...mixture, shared_expert_intermediate_size: 1500 });
  assert.deepEqual(wide.shape.experts, { count: 8, perToken: 2, sharedIntermediate: 1500 });
  const several = modelOf({ ...mixture, n_shared_experts: 2 });
  assert.deepEqual(several.shape.experts, { count: 8, perToken: 2, sharedIntermediate: 1536 });
  const more = weightBytes(wide) - weightBytes(modelOf(mixture));
  assert.equal(more, 32 * 3 * 4096 * 1500 * 2);
});

test("DeepSeek R1 has its 671 billion parameters, most in experts, and a cache of 70 KB a token on every board", () => {
  const model = modelOf({
    ...LLAMA_8B,
    model_type: "deepseek_v3",
    hidden_size: 7168,
    intermediate_size: 18_432,
    num_attention_heads: 128,
    num_hidden_layers: 61,
    num_key_value_heads: 128,
    vocab_size: 129_280,
    q_lora_rank: 1536,
    kv_lora_rank: 512,
    qk_nope_head_dim: 128,
    qk_rope_head_dim: 64,
    v_head_dim: 128,
    first_k_dense_replace: 3,
    n_routed_experts: 256,
    n_shared_experts: 1,
    num_experts_per_tok: 8,
    moe_intermediate_size: 2048,
  });
  assert.deepEqual(model.shape.denseLayers, { count: 3, intermediate: 18_432 });
  assert.ok(Math.abs(weightBytes(model) / 2 / 671e9 - 1) < 0.01, `${weightBytes(model)}`);
  assert.equal(kvBytesPerToken(model.shape, 1), 61 * 576 * 2);
  assert.equal(kvBytesPerToken(model.shape, 8), 61 * 576 * 2);
});

test("layers without experts, and layers that attend a window, are counted as they are stated", () => {
  const mixture = { ...LLAMA_8B, num_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 768 };
  const dense = (config: object) => modelOf({ ...mixture, ...config }).shape.denseLayers?.count ?? 0;
  assert.equal(dense({ decoder_sparse_step: 2 }), 16);
  assert.equal(dense({ mlp_only_layers: [0, 1] }), 2);
  assert.equal(dense({ decoder_sparse_step: 1, mlp_only_layers: [], first_k_dense_replace: 0 }), 0);
  const window = (config: object) => modelOf({ ...LLAMA_8B, ...config }).shape.window;
  assert.deepEqual(window({ sliding_window: 4096 }), { layers: 32, tokens: 4096 });
  assert.equal(window({ sliding_window: 4096, use_sliding_window: false }), undefined);
  const layer_types = Array.from({ length: 32 }, (_, i) => (i % 2 === 0 ? "sliding_attention" : "full_attention"));
  assert.deepEqual(window({ sliding_window: 128, layer_types }), { layers: 16, tokens: 128 });
});

test("a model of another kind is refused by the key that states it", () => {
  for (const [key, value, words] of [
    ["model_type", "mamba2", /^model_type "mamba2" is not simulated: expected one of llama, /],
    ["linear_num_key_heads", 16, /^linear_num_key_heads is not simulated: expected none/],
    ["index_topk", 2048, /^index_topk is not simulated/],
    ["layer_types", ["linear_attention"], /^layer_types: "linear_attention" is not simulated: expected full_attention/],
  ] as const) {
    const read = readHuggingFaceModel({ ...LLAMA_8B, [key]: value });
    assert.ok(typeof read === "string", key);
    assert.match(read, words);
  }
  modelOf({ ...LLAMA_8B, kv_lora_rank: null, model_type: "llama" });
});

test("what is missing is named", () => {
  assert.equal(readHuggingFaceModel([]), "config.json must be an object");
  assert.equal(
    readHuggingFaceModel({ ...LLAMA_8B, num_hidden_layers: undefined, torch_dtype: "int3" }),
    "torch_dtype must be one of float32, float16, bfloat16, float8_e4m3fn, float8_e5m2; num_hidden_layers must be a whole number above 0",
  );
  for (const wrong of [0, -1, 1.5, "32"])
    assert.equal(
      readHuggingFaceModel({ ...LLAMA_8B, num_hidden_layers: wrong }),
      "num_hidden_layers must be a whole number above 0",
    );
});
