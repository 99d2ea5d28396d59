import { readHuggingFaceModel, type ModelConfig } from "#engine/step-time/hugging-face.ts";

const silu = { hidden_act: "silu", torch_dtype: "bfloat16", tie_word_embeddings: false };

function sizes(
  model_type: string,
  num_hidden_layers: number,
  hidden_size: number,
  num_attention_heads: number,
  num_key_value_heads: number,
  intermediate_size: number,
  vocab_size: number,
) {
  return {
    ...silu,
    model_type,
    num_hidden_layers,
    hidden_size,
    num_attention_heads,
    num_key_value_heads,
    intermediate_size,
    vocab_size,
    max_position_embeddings: 131_072,
  };
}

const fp8 = { quantization_config: { quant_method: "fp8" } };

const deepseek = {
  ...sizes("deepseek_v3", 61, 7168, 128, 128, 18_432, 129_280),
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
};

/** The keys of the models' config.json that matter, by their cards. */
const CONFIGS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "llama-2-7b": sizes("llama", 32, 4096, 32, 32, 11_008, 32_000),
  "llama-2-70b": sizes("llama", 80, 8192, 64, 8, 28_672, 32_000),
  "llama-3.1-8b": sizes("llama", 32, 4096, 32, 8, 14_336, 128_256),
  "llama-3.1-70b": sizes("llama", 80, 8192, 64, 8, 28_672, 128_256),
  "llama-3.1-70b-fp8": { ...sizes("llama", 80, 8192, 64, 8, 28_672, 128_256), ...fp8 },
  "codellama-34b": sizes("llama", 48, 8192, 64, 8, 22_016, 32_000),
  "yi-34b": sizes("llama", 60, 7168, 56, 8, 20_480, 64_000),
  "mistral-nemo-12b": { ...sizes("mistral", 40, 5120, 32, 8, 14_336, 131_072), head_dim: 128 },
  "ministral-3-8b": { ...sizes("ministral3", 34, 4096, 32, 8, 14_336, 131_072), head_dim: 128 },
  "ministral-3-3b-fp8": {
    ...sizes("ministral3", 26, 3072, 32, 8, 9216, 131_072),
    head_dim: 128,
    tie_word_embeddings: true,
    ...fp8,
  },
  "ministral-3-8b-fp8": { ...sizes("ministral3", 34, 4096, 32, 8, 14_336, 131_072), head_dim: 128, ...fp8 },
  "ministral-3-14b-fp8": { ...sizes("ministral3", 40, 5120, 32, 8, 16_384, 131_072), head_dim: 128, ...fp8 },
  "qwen2.5-7b": sizes("qwen2", 28, 3584, 28, 4, 18_944, 152_064),
  "qwen2.5-72b": sizes("qwen2", 80, 8192, 64, 8, 29_568, 152_064),
  "qwen3-1.7b": {
    ...sizes("qwen3", 28, 2048, 16, 8, 6144, 151_936),
    head_dim: 128,
    tie_word_embeddings: true,
  },
  "qwen3-4b": { ...sizes("qwen3", 36, 2560, 32, 8, 9728, 151_936), head_dim: 128, tie_word_embeddings: true },
  "qwen3-8b": { ...sizes("qwen3", 36, 4096, 32, 8, 12_288, 151_936), head_dim: 128 },
  "qwen3-14b": { ...sizes("qwen3", 40, 5120, 40, 8, 17_408, 151_936), head_dim: 128 },
  "qwen3-30b-a3b": {
    ...sizes("qwen3_moe", 48, 2048, 32, 4, 6144, 151_936),
    head_dim: 128,
    num_experts: 128,
    num_experts_per_tok: 8,
    moe_intermediate_size: 768,
  },
  "mixtral-8x7b": {
    ...sizes("mixtral", 32, 4096, 32, 8, 14_336, 32_000),
    num_local_experts: 8,
    num_experts_per_tok: 2,
  },
  "mixtral-8x22b": {
    ...sizes("mixtral", 56, 6144, 48, 8, 16_384, 32_768),
    num_local_experts: 8,
    num_experts_per_tok: 2,
  },
  "llama-4-scout-fp8": {
    model_type: "llama4",
    text_config: {
      ...sizes("llama4_text", 48, 5120, 40, 8, 8192, 202_048),
      head_dim: 128,
      intermediate_size_mlp: 16_384,
      interleave_moe_layer_step: 1,
      num_local_experts: 16,
      num_experts_per_tok: 1,
    },
    quantization_config: {
      quant_method: "compressed-tensors",
      config_groups: { group_0: { weights: { num_bits: 8, type: "float" }, input_activations: { num_bits: 8 } } },
      ignore: ["language_model.model.layers.0.self_attn.q_proj", "language_model.lm_head"],
    },
  },
  "deepseek-r1-awq": { ...deepseek, quantization_config: { quant_method: "awq", bits: 4, group_size: 64 } },
  "deepseek-r1-fp8": { ...deepseek, ...fp8 },
};

/** What gnomon reads from it. */
export function modelNamed(name: string): ModelConfig {
  const config = Object.hasOwn(CONFIGS, name) ? CONFIGS[name] : undefined;
  if (config === undefined) throw new Error(`${name}: expected one of ${Object.keys(CONFIGS).join(", ")}`);
  const model = readHuggingFaceModel(config);
  if (typeof model === "string") throw new Error(`${name}: ${model}`);
  return model;
}
