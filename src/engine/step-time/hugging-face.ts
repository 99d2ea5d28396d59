import type { ExpertShape, ModelShape } from "./model-shape.ts";

/** A model as a Hugging Face config.json describes it. */
export interface HuggingFaceModel {
  readonly shape: ModelShape;
  readonly vocabulary: number;
  /** The output head is the embedding. */
  readonly tiedEmbeddings: boolean;
  /** Longest sequence that the model was made for. */
  readonly tokensMax: number;
}

/** Bytes of a parameter by torch_dtype. */
const DTYPE_BYTES: Readonly<Record<string, number>> = {
  float32: 4,
  float16: 2,
  bfloat16: 2,
  float8_e4m3fn: 1,
  float8_e5m2: 1,
};

/**
 * Reads a config.json. Multimodal models have the language model under `text_config`. Returns what is missing or wrong
 * as text, naming the key, where the file does not describe a transformer of the known kind.
 */
export function readHuggingFaceModel(value: unknown): HuggingFaceModel | string {
  const outer = fieldsOf(value);
  if (outer === undefined) return "config.json must be an object";
  const fields = fieldsOf(outer.get("text_config")) ?? outer;
  const problems: string[] = [];
  const whole = (names: readonly string[], otherwise?: number): number => {
    const found = names
      .map((name) => fields.get(name))
      .find((candidate) => candidate !== undefined && candidate !== null);
    const number = found ?? otherwise;
    if (typeof number === "number" && Number.isInteger(number) && number > 0) return number;
    problems.push(`${names[0] ?? ""} must be a whole number above 0`);
    return 1;
  };
  const dtype = fields.get("torch_dtype") ?? fields.get("dtype") ?? outer.get("torch_dtype") ?? "bfloat16";
  const bytesPerParameter = typeof dtype === "string" ? DTYPE_BYTES[dtype] : undefined;
  if (bytesPerParameter === undefined) {
    problems.push(`torch_dtype must be one of ${Object.keys(DTYPE_BYTES).join(", ")}`);
  }
  const heads = whole(["num_attention_heads"]);
  const hidden = whole(["hidden_size"]);
  const experts = whole(["num_local_experts", "num_experts", "n_routed_experts"], 1);
  problems.push(...notSimulated(fields));
  const shape: ModelShape = {
    layers: whole(["num_hidden_layers"]),
    hidden,
    heads,
    kvHeads: whole(["num_key_value_heads"], heads),
    headSize: whole(["head_dim"], hidden / heads),
    intermediate: whole(experts > 1 ? ["moe_intermediate_size", "intermediate_size"] : ["intermediate_size"]),
    bytesPerParameter: bytesPerParameter ?? 2,
    mlpMatrices: GATED.has(fields.get("hidden_act") ?? "silu") ? 3 : 2,
    ...(experts > 1 ? { experts: expertsOf(fields, experts, whole) } : {}),
  };
  const model: HuggingFaceModel = {
    shape,
    vocabulary: whole(["vocab_size"]),
    tiedEmbeddings: fields.get("tie_word_embeddings") === true,
    tokensMax: whole(["max_position_embeddings"], 4096),
  };
  return problems.length > 0 ? problems.join("; ") : model;
}

/** What every token uses beside its experts is stated as a width, or as a number of experts of the usual width. */
function expertsOf(
  fields: ReadonlyMap<string, unknown>,
  count: number,
  whole: (names: readonly string[], otherwise?: number) => number,
): ExpertShape {
  const perToken = whole(["num_experts_per_tok", "num_experts_per_token"]);
  const stated = fields.get("shared_expert_intermediate_size") ?? 0;
  const shared = fields.get("n_shared_experts") ?? 0;
  const width = Number(stated) || Number(shared) * whole(["moe_intermediate_size", "intermediate_size"]);
  return width > 0 ? { count, perToken, sharedIntermediate: width } : { count, perToken };
}

/** Layers unlike the others, and attention of another kind: a step time for them would be one of another model. */
function notSimulated(fields: ReadonlyMap<string, unknown>): string[] {
  const above = (name: string, usual: number) => Number(fields.get(name) ?? usual) > usual;
  const problems: string[] = [];
  if (above("kv_lora_rank", 0)) problems.push("kv_lora_rank is not simulated: expected 0 or none (latent attention)");
  if (above("first_k_dense_replace", 0))
    problems.push("first_k_dense_replace is not simulated: expected 0 or none (layers without experts)");
  if (above("decoder_sparse_step", 1))
    problems.push("decoder_sparse_step is not simulated: expected 1 or none (layers without experts)");
  const dense = fields.get("mlp_only_layers");
  if (Array.isArray(dense) && dense.length > 0)
    problems.push("mlp_only_layers is not simulated: expected [] or none (layers without experts)");
  return problems;
}

/** Activations that come with a gate, in the models that name them. */
const GATED: ReadonlySet<unknown> = new Set(["silu", "swish", "gelu_pytorch_tanh"]);

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return new Map<string, unknown>(Object.entries(value));
}
