/** What a config.json states of quantised weights. */
export interface Quantization {
  /** Bytes of a weight, the scales of its group included. */
  readonly weightBytes: number;
  /** The attention's weights are left as they were. */
  readonly attentionKept: boolean;
  /** Weights and activations are multiplied in 8 bits or less. */
  readonly narrowMultiply: boolean;
  /** Bytes of a number in the KV cache, where the file states that it is quantised too. */
  readonly kvBytes?: number;
}

const METHODS = [
  "fp8",
  "fbgemm_fp8",
  "compressed-tensors",
  "modelopt",
  "awq",
  "awq_marlin",
  "gptq",
  "gptq_marlin",
  "mxfp4",
  "nvfp4",
] as const;

/**
 * Reads `quantization_config` (or modelopt's `quantization`). Returns the key and what it may be where it is none of a
 * known kind.
 */
export function readQuantization(value: unknown): Quantization | string {
  const config = fieldsOf(value);
  if (config === undefined) return "quantization_config must be an object";
  const method = wordOf(config.get("quant_method") ?? config.get("quant_algo"));
  const kvBytes = kvBytesOf(config);
  const common = { attentionKept: keepsAttention(config), ...(kvBytes !== undefined && { kvBytes }) };
  switch (method) {
    case "fp8":
    case "fbgemm_fp8":
      return { ...common, weightBytes: 1, narrowMultiply: true };
    case "modelopt": {
      const algorithm = wordOf(config.get("quant_algo")) || "fp8";
      if (algorithm === "fp8") return { ...common, weightBytes: 1, narrowMultiply: true };
      if (algorithm === "nvfp4") return { ...common, ...NVFP4 };
      return "quantization_config.quant_algo must be one of FP8, NVFP4";
    }
    case "nvfp4":
    case "modelopt_fp4":
      return { ...common, ...NVFP4 };
    case "mxfp4":
      // A scale of one byte for 32 weights; attention, router and head are left as they were.
      return { ...common, weightBytes: 0.5 + 1 / 32, attentionKept: true, narrowMultiply: false };
    case "awq":
    case "awq_marlin":
    case "gptq":
    case "gptq_marlin": {
      const bits = Number(config.get("bits") ?? config.get("w_bit") ?? 4);
      const group = Number(config.get("group_size") ?? config.get("q_group_size") ?? 128);
      if (![2, 3, 4, 8].includes(bits)) return "quantization_config.bits must be 2, 3, 4 or 8";
      // A scale of 16 bits and a zero point for each group of weights.
      const scales = group > 0 ? (2 + bits / 8) / group : 0;
      return { ...common, weightBytes: bits / 8 + scales, narrowMultiply: false };
    }
    case "compressed-tensors":
      return compressed(config, common);
    default:
      return `quantization_config.quant_method must be one of ${METHODS.join(", ")}, got ${method || "none"}`;
  }
}

/** A scale of one byte for 16 weights; multiplied in 8 bits at least. */
const NVFP4 = { weightBytes: 0.5 + 1 / 16, narrowMultiply: true } as const;

function compressed(
  config: ReadonlyMap<string, unknown>,
  common: Pick<Quantization, "attentionKept" | "kvBytes">,
): Quantization | string {
  const groups = [...(fieldsOf(config.get("config_groups"))?.values() ?? [])].map((group) => fieldsOf(group));
  const weights = groups.map((group) => fieldsOf(group?.get("weights")));
  const bits = Math.min(...weights.map((one) => Number(one?.get("num_bits"))));
  if (![4, 8].includes(bits)) return "quantization_config.config_groups.*.weights.num_bits must be 4 or 8";
  const group = Math.max(0, ...weights.map((one) => Number(one?.get("group_size") ?? 0) || 0));
  const narrow = groups.some((one) => Number(fieldsOf(one?.get("input_activations"))?.get("num_bits") ?? 16) <= 8);
  return { ...common, weightBytes: bits / 8 + (group > 0 ? 1 / group : 0), narrowMultiply: narrow };
}

/** By the layers that are named as left out. */
function keepsAttention(config: ReadonlyMap<string, unknown>): boolean {
  const left = config.get("ignore") ?? config.get("modules_to_not_convert") ?? config.get("exclude_modules") ?? [];
  return Array.isArray(left) && left.some((name) => /^(?!.*vision).*self_attn/.test(String(name)));
}

function kvBytesOf(config: ReadonlyMap<string, unknown>): number | undefined {
  const stated = fieldsOf(config.get("kv_cache_scheme"))?.get("num_bits");
  if (typeof stated === "number") return stated / 8;
  const algorithm = wordOf(config.get("kv_cache_quant_algo"));
  return algorithm === "fp8" ? 1 : algorithm === "nvfp4" ? 0.5 + 1 / 16 : undefined;
}

function wordOf(value: unknown): string {
  return typeof value === "string" ? value.toLowerCase() : "";
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return new Map<string, unknown>(Object.entries(value));
}
