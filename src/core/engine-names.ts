/**
 * Fields of a request by which engines and their routers arrange its work among themselves: which host computes or sends
 * its blocks, which rank takes it, before whom it runs. vLLM's, then SGLang's.
 */
export const ENGINE_FIELDS = [
  "kv_transfer_params",
  "ec_transfer_params",
  "priority",
  "bootstrap_host",
  "bootstrap_port",
  "bootstrap_room",
  "data_parallel_rank",
  "routed_dp_rank",
  "disagg_prefill_dp_rank",
] as const;

/** Headers of the same kind: vLLM's, then those of llm-d's sidecar beside an engine. */
export const ENGINE_HEADERS = [
  "x-vllm-priority",
  "x-data-parallel-rank",
  "x-data-parallel-host-port",
  "x-prefiller-host-port",
  "x-prefiller-url",
  "x-encoder-hosts-ports",
] as const;

export type EngineName = (typeof ENGINE_FIELDS)[number] | (typeof ENGINE_HEADERS)[number];
