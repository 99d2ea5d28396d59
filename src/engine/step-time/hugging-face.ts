import type { ExpertShape, LatentShape, ModelShape } from "./model-shape.ts";
import { readQuantization } from "./quantization.ts";

/** A model as a Hugging Face config.json describes it. */
export interface ModelConfig {
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

/** Families whose layers are those that are simulated; the part before `_text`, of a multimodal one's language model. */
const FAMILIES: ReadonlySet<string> = new Set(
  (
    "llama llama4 mistral mistral3 ministral3 mixtral qwen2 qwen3 qwen2_moe qwen3_moe qwen2_vl qwen2_5_vl qwen3_vl " +
    "qwen3_vl_moe gemma gemma2 gemma3 phi phi3 phimoe granite granitemoe starcoder2 cohere cohere2 olmo olmo2 olmo3 " +
    "olmoe glm glm4 glm4_moe glm4_moe_lite deepseek deepseek_v2 deepseek_v3 kimi_k2 gpt_oss internlm2 internlm3 exaone " +
    "exaone4 smollm3 stablelm yi baichuan minimax_m2 ernie4_5 ernie4_5_moe hunyuan_v1_dense hunyuan_v1_moe seed_oss"
  ).split(" "),
);

type Fields = ReadonlyMap<string, unknown>;
type Whole = (names: readonly string[], otherwise?: number) => number;

/**
 * Reads a config.json. Multimodal models have the language model under `text_config`. Returns what is missing or wrong
 * as text, naming the key, where the file does not describe a transformer of a known kind.
 */
export function readHuggingFaceModel(value: unknown): ModelConfig | string {
  const outer = fieldsOf(value);
  if (outer === undefined) return "config.json must be an object";
  const fields = fieldsOf(outer.get("text_config")) ?? outer;
  const problems: string[] = [];
  const whole: Whole = (names, otherwise) => {
    const found = names
      .map((name) => fields.get(name))
      .find((candidate) => candidate !== undefined && candidate !== null);
    const number = found ?? otherwise;
    if (typeof number === "number" && Number.isInteger(number) && number > 0) return number;
    problems.push(`${names[0] ?? ""} must be a whole number above 0`);
    return 1;
  };
  const dtype = fields.get("torch_dtype") ?? fields.get("dtype") ?? outer.get("torch_dtype") ?? outer.get("dtype");
  const bytesPerParameter = typeof dtype === "string" ? DTYPE_BYTES[dtype] : dtype === undefined ? 2 : undefined;
  if (bytesPerParameter === undefined) {
    problems.push(`torch_dtype must be one of ${Object.keys(DTYPE_BYTES).join(", ")}`);
  }
  const heads = whole(["num_attention_heads"]);
  const hidden = whole(["hidden_size"]);
  const layers = whole(["num_hidden_layers"]);
  const experts = whole(["num_local_experts", "num_experts", "n_routed_experts"], 1);
  problems.push(...notSimulated(fields));
  const latent = latentOf(fields);
  const shape: ModelShape = {
    layers,
    hidden,
    heads,
    kvHeads: whole(["num_key_value_heads"], heads),
    headSize: whole(["head_dim"], latent === undefined ? hidden / heads : latent.plainSize + latent.rotarySize),
    intermediate: whole(experts > 1 ? ["moe_intermediate_size", "intermediate_size"] : ["intermediate_size"]),
    bytesPerParameter: bytesPerParameter ?? 2,
    mlpMatrices: GATED.has(fields.get("hidden_act") ?? fields.get("hidden_activation") ?? "silu") ? 3 : 2,
    ...quantized(fields.get("quantization_config") ?? outer.get("quantization_config"), problems),
    ...(experts > 1 && { experts: expertsOf(fields, experts, whole) }),
    ...(experts > 1 && denseLayersOf(fields, layers, whole)),
    ...(latent && { latent }),
    ...windowOf(fields, layers, problems),
  };
  const model: ModelConfig = {
    shape,
    vocabulary: whole(["vocab_size"]),
    tiedEmbeddings: (fields.get("tie_word_embeddings") ?? outer.get("tie_word_embeddings")) === true,
    tokensMax: whole(["max_position_embeddings"], 4096),
  };
  return problems.length > 0 ? problems.join("; ") : model;
}

function quantized(
  value: unknown,
  problems: string[],
): Partial<Pick<ModelShape, "weightBytes" | "attentionWeightBytes" | "narrowMultiply" | "kvBytes">> {
  if (value === undefined || value === null) return {};
  const read = readQuantization(value);
  if (typeof read === "string") {
    problems.push(read);
    return {};
  }
  const { weightBytes, attentionKept, narrowMultiply, kvBytes } = read;
  return {
    weightBytes,
    narrowMultiply,
    ...(attentionKept && { attentionWeightBytes: 2 }),
    ...(kvBytes !== undefined && { kvBytes }),
  };
}

/** What every token uses beside its experts is stated as a width, or as a number of experts of the usual width. */
function expertsOf(fields: Fields, count: number, whole: Whole): ExpertShape {
  const perToken = whole(["num_experts_per_tok", "num_experts_per_token", "moe_topk"]);
  const stated = fields.get("shared_expert_intermediate_size") ?? 0;
  // Llama 4 has one shared expert of the usual width in every such layer, and no key for it.
  const llama4 = String(fields.get("model_type")).startsWith("llama4") ? 1 : 0;
  const shared = fields.get("n_shared_experts") ?? llama4;
  const width = Number(stated) || Number(shared) * whole(["moe_intermediate_size", "intermediate_size"]);
  return width > 0 ? { count, perToken, sharedIntermediate: width } : { count, perToken };
}

/** Layers of a mixture without experts: the first ones, those between every n-th, or those that are listed. */
function denseLayersOf(fields: Fields, layers: number, whole: Whole): Pick<ModelShape, "denseLayers"> {
  const first = Number(fields.get("first_k_dense_replace") ?? 0);
  const every = Number(fields.get("decoder_sparse_step") ?? fields.get("interleave_moe_layer_step") ?? 1);
  const listed = fields.get("mlp_only_layers");
  const alone = Array.isArray(listed) ? listed.length : 0;
  const count = Math.min(layers - 1, first + alone + (every > 1 ? layers - Math.floor(layers / every) : 0));
  if (!(count > 0)) return {};
  return { denseLayers: { count, intermediate: whole(["intermediate_size_mlp", "intermediate_size"]) } };
}

function latentOf(fields: Fields): LatentShape | undefined {
  const keyRank = Number(fields.get("kv_lora_rank") ?? 0);
  if (!(keyRank > 0)) return undefined;
  const number = (name: string, otherwise: number) => Number(fields.get(name) ?? otherwise);
  return {
    queryRank: number("q_lora_rank", 0),
    keyRank,
    plainSize: number("qk_nope_head_dim", 128),
    rotarySize: number("qk_rope_head_dim", 64),
    valueSize: number("v_head_dim", 128),
  };
}

/** Layers that attend a window, as `layer_types` lists them or a pattern states. */
function windowOf(fields: Fields, layers: number, problems: string[]): Pick<ModelShape, "window"> {
  const tokens = Number(fields.get("sliding_window") ?? 0);
  const kinds: unknown = fields.get("layer_types");
  if (Array.isArray(kinds)) {
    const known = ["full_attention", "sliding_attention", "chunked_attention"];
    const unknown = (kinds as readonly unknown[]).find((kind) => !known.includes(String(kind)));
    if (unknown !== undefined) {
      problems.push(`layer_types: ${JSON.stringify(unknown)} is not simulated: expected ${known.join(", ")}`);
    }
    const count = kinds.filter((kind) => kind === "sliding_attention").length;
    return count > 0 && tokens > 0 ? { window: { layers: count, tokens } } : {};
  }
  if (!(tokens > 0) || fields.get("use_sliding_window") === false) return {};
  const pattern = Number(fields.get("sliding_window_pattern") ?? 0);
  return { window: { layers: pattern > 1 ? layers - Math.floor(layers / pattern) : layers, tokens } };
}

/** Layers of another kind: a step time for them would be one of another model. */
function notSimulated(fields: Fields): string[] {
  const problems: string[] = [];
  const family = fields.get("model_type");
  if (family !== undefined && !(typeof family === "string" && FAMILIES.has(family.replace(/_text$/, ""))))
    problems.push(`model_type ${JSON.stringify(family)} is not simulated: expected one of ${[...FAMILIES].join(", ")}`);
  for (const key of fields.keys()) {
    if (/^(mamba_|ssm_|linear_num_|hybrid_override_pattern$|index_topk$)/.test(key) && fields.get(key) !== null)
      problems.push(`${key} is not simulated: expected none (state-space, linear or sparse attention)`);
  }
  return problems;
}

/** Activations that come with a gate, in the models that name them. */
const GATED: ReadonlySet<unknown> = new Set(["silu", "swish", "gelu_pytorch_tanh"]);

function fieldsOf(value: unknown): Fields | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return new Map<string, unknown>(Object.entries(value));
}
