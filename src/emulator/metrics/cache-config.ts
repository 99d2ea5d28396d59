import type { EngineConfig } from "#engine/config.ts";
import { familyHead, labelText } from "./exposition.ts";

/**
 * The family whose labels say how the KV cache is laid out. Fields that the emulator has no use for keep vLLM's
 * defaults.
 */
export function renderCacheConfig(engine: EngineConfig): string {
  const size = engine.kvBlocks * engine.blockTokens;
  const labels = {
    ...DEFAULTS,
    block_size: String(engine.blockTokens),
    effective_attention_block_size: String(engine.blockTokens),
    enable_prefix_caching: engine.prefixCaching ? "True" : "False",
    engine: "0",
    kv_cache_max_concurrency: pythonFloat(size / engine.modelTokensMax),
    kv_cache_size_tokens: String(size),
    num_gpu_blocks: String(engine.kvBlocks),
  };
  const name = "vllm:cache_config_info";
  return `${familyHead(name, "gauge", "Information of the LLMEngine CacheConfig")}${name}${labelText(labels)} 1.0\n`;
}

const DEFAULTS = {
  _block_size_resolved: "True",
  cache_dtype: "auto",
  cache_hit_alignment_tokens: "None",
  enable_mamba_shared_prefix_checkpoint: "False",
  gpu_memory_utilization: "0.92",
  hash_block_size: "None",
  is_attention_free: "False",
  kv_cache_dtype_skip_layers: "[]",
  kv_cache_layout: "None",
  kv_cache_memory_bytes: "None",
  kv_offloading_backend: "native",
  kv_offloading_size: "None",
  kv_sharing_fast_prefill: "False",
  mamba_block_size: "None",
  mamba_cache_dtype: "auto",
  mamba_cache_mode: "none",
  mamba_page_size_padded: "None",
  mamba_ssm_cache_dtype: "float32",
  num_cpu_blocks: "None",
  num_gpu_blocks_override: "None",
  prefix_cache_retention_interval: "0",
  prefix_caching_hash_algo: "sha256",
  prefix_match_unit: "None",
  replayssm_buffer_len: "16",
  skip_page_size_padded: "None",
  sliding_window: "None",
  swa_bounded_replay: "True",
  use_kda_recoverssm: "False",
  use_replayssm: "False",
  user_specified_block_size: "True",
};

function pythonFloat(value: number): string {
  return Number.isInteger(value) ? `${value}.0` : String(value);
}
