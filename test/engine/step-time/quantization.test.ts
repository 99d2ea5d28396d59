import assert from "node:assert/strict";
import { test } from "node:test";
import { weightBytes } from "#engine/kv-capacity.ts";
import { readHuggingFaceModel } from "#engine/step-time/hugging-face.ts";
import { readQuantization } from "#engine/step-time/quantization.ts";

test("bytes of a weight, activations and cache are read of every common form", () => {
  const compressed = (bits: number, activations: number | undefined, more: object = {}) => ({
    quant_method: "compressed-tensors",
    config_groups: {
      group_0: {
        weights: { num_bits: bits, ...more },
        input_activations: activations === undefined ? null : { num_bits: activations },
      },
    },
  });
  for (const [config, bytes, narrow] of [
    [{ quant_method: "fp8", weight_block_size: [128, 128] }, 1, true],
    [{ quant_method: "fbgemm_fp8" }, 1, true],
    [compressed(8, 8), 1, true],
    [compressed(4, undefined, { group_size: 128 }), 0.5 + 1 / 128, false],
    [{ quant_method: "awq", bits: 4, group_size: 128 }, 0.5 + 2.5 / 128, false],
    [{ quant_method: "gptq", bits: 8, group_size: -1 }, 1, false],
    [{ quant_method: "modelopt", quant_algo: "NVFP4" }, 0.5625, true],
    [{ quant_method: "modelopt", quant_algo: "FP8" }, 1, true],
    [{ quant_method: "mxfp4" }, 0.53125, false],
  ] as const) {
    const read = readQuantization(config);
    assert.ok(typeof read !== "string", JSON.stringify(config));
    assert.equal(read.weightBytes, bytes);
    assert.equal(read.narrowMultiply, narrow);
    assert.equal(read.kvBytes, undefined);
  }
  const kv = readQuantization({ ...compressed(8, 8), kv_cache_scheme: { num_bits: 8 } });
  assert.ok(typeof kv !== "string" && kv.kvBytes === 1);
  const left = readQuantization({ quant_method: "fp8", ignore: ["model.layers.0.self_attn.q_proj", "lm_head"] });
  assert.ok(typeof left !== "string" && left.attentionKept);
  const vision = readQuantization({ quant_method: "fp8", ignore: ["vision_model.layers.0.self_attn.q_proj"] });
  assert.ok(typeof vision !== "string" && !vision.attentionKept);
});

test("what is not known is refused by its name", () => {
  for (const [config, words] of [
    [{ quant_method: "bitsandbytes" }, /quant_method must be one of fp8, .*, got bitsandbytes/],
    [{}, /quant_method must be one of .*, got none/],
    [{ quant_method: "awq", bits: 5 }, /bits must be 2, 3, 4 or 8/],
    [{ quant_method: "modelopt", quant_algo: "W4A8" }, /quant_algo must be one of FP8, NVFP4/],
    [{ quant_method: "compressed-tensors", config_groups: {} }, /num_bits must be 4 or 8/],
    ["fp8", /must be an object/],
  ] as const) {
    const read = readQuantization(config);
    assert.ok(typeof read === "string");
    assert.match(read, words);
  }
});

test("a quantised model is as large as its files", () => {
  const llama = {
    model_type: "llama",
    hidden_act: "silu",
    hidden_size: 4096,
    intermediate_size: 14336,
    num_attention_heads: 32,
    num_hidden_layers: 32,
    num_key_value_heads: 8,
    torch_dtype: "bfloat16",
    vocab_size: 128256,
  };
  const gigabytes = (config: object) => {
    const model = readHuggingFaceModel({ ...llama, ...config });
    assert.ok(typeof model !== "string");
    return weightBytes(model) / 1e9;
  };
  assert.ok(Math.abs(gigabytes({}) - 16.06) < 0.1);
  // The sizes of the model's files at Hugging Face.
  assert.ok(Math.abs(gigabytes({ quantization_config: { quant_method: "fp8" } }) - 9.08) < 0.2);
  assert.ok(
    Math.abs(gigabytes({ quantization_config: { quant_method: "awq", bits: 4, group_size: 128 } }) - 5.73) < 0.2,
  );
});
