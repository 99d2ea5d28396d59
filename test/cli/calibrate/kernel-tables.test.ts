import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { calibrateCommand } from "#cli/calibrate/calibrate.ts";
import { loadEngine } from "#config/engine-file.ts";
import { achievedBy } from "#engine/achieved.ts";
import { HARDWARE } from "#engine/hardware.ts";
import { addDecode, addPrefill, type BatchShape, emptyShape } from "#engine/step-time/batch-shape.ts";
import { createStepTime } from "#engine/step-time/create-step-time.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-kernel-tables-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const LAYERS = 10;
const HIDDEN = 1024;
const CONFIG = {
  model_type: "llama",
  hidden_act: "silu",
  hidden_size: HIDDEN,
  intermediate_size: 4096,
  num_attention_heads: 8,
  num_hidden_layers: LAYERS,
  num_key_value_heads: 4,
  torch_dtype: "bfloat16",
  vocab_size: 32_000,
};
const MIXTURE = { ...CONFIG, num_local_experts: 8, num_experts_per_tok: 2 };
const { stepMicros, sequenceMicros, bandwidth, compute } = achievedBy("hopper");
const H100 = HARDWARE["H100"]!;

let written = 0;
function folderOf(files: Readonly<Record<string, string | undefined>>): string {
  const folder = join(FOLDER, `t${written++}`);
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) if (text !== undefined) writeFileSync(join(folder, name), text);
  return folder;
}

const csv = (columns: readonly string[], rows: readonly (readonly (string | number)[])[]) =>
  [columns, ...rows].map((row) => row.join(",")).join("\n");

const gnomon = (t: TestContext, ...argv: string[]) => inProcess(t, [calibrateCommand()], ["calibrate", ...argv]);

async function stepsOf(t: TestContext, folders: readonly string[], tp = 1, config: object = CONFIG) {
  const file = join(FOLDER, `engine${written++}.yaml`);
  const { code, said } = await gnomon(t, ...flagsOf(folders, tp, config), "-o", file);
  assert.equal(code, 0, said);
  return createStepTime(loadEngine(file).stepTime);
}

function flagsOf(folders: readonly string[], tp: number, config: object): string[] {
  const model = join(FOLDER, `model${written++}.json`);
  writeFileSync(model, JSON.stringify(config));
  const given = folders.flatMap((folder) => ["--from-kernels", folder]);
  return [...given, "--model-config", model, "--hardware", "H100", "--tp", String(tp)];
}

function decodes(count: number, context: number): BatchShape {
  const shape = emptyShape();
  for (let i = 0; i < count; i++) addDecode(shape, context);
  return shape;
}

function prefill(context: number, tokens: number): BatchShape {
  const shape = emptyShape();
  addPrefill(shape, context, tokens);
  return shape;
}

/** An engine file has so many digits. */
const near = (got: number, expected: number) =>
  assert.ok(Math.abs(got / expected - 1) < 2e-4, `${got} for ${expected}`);

/** Vidur's columns: github.com/microsoft/vidur 7d47513, data/profiling/{compute,network}; times are this test's own. */
const VIDUR_KERNELS =
  "emb input_layernorm attn_pre_proj attn_rope attn_post_proj post_attention_layernorm mlp_up_proj mlp_act mlp_down_proj add".split(
    " ",
  );
const MLP = csv(
  [
    ...VIDUR_KERNELS.flatMap((name) => ["min", "median"].map((part) => `time_stats.${name}.${part}`)),
    ..."n_head n_kv_head n_embd n_expanded_embd vocab_size use_gated_mlp num_tokens num_tensor_parallel_workers".split(
      " ",
    ),
  ],
  [1, 2].flatMap((boards) =>
    [1, 64, 1024, 4096].map((tokens) => [
      // Every kernel takes 2 us and 1 ns a token, milliseconds in the table; the least is not what counts.
      ...VIDUR_KERNELS.flatMap(() => [0.0001, 0.002 + (1e-6 * tokens) / boards]),
      8,
      4,
      HIDDEN,
      4096,
      32_768,
      "True",
      tokens,
      boards,
    ]),
  ),
);
const VIDUR_ATTENTION = csv(
  [
    ..."attn_input_reshape attn_kv_cache_save attn_prefill attn_decode attn_output_reshape"
      .split(" ")
      .map((name) => `time_stats.${name}.median`),
    ..."n_embd n_q_head n_kv_head block_size num_tensor_parallel_workers max_model_len batch_size prefill_chunk_size kv_cache_size is_prefill attention_backend".split(
      " ",
    ),
  ],
  [1, 2].flatMap((boards) => {
    const tail = (batch: number, chunk: number, context: number) =>
      [HIDDEN, 8, 4, 16, boards, 4096, batch, chunk, context, chunk > 0 ? "True" : "False", "FLASHINFER"] as const;
    return [
      ...[1, 32, 128].flatMap((batch) =>
        [32, 1024, 4032].map((context) => [0, 0.001, "", 0.01 + 1e-6 * batch * context, 0, ...tail(batch, 0, context)]),
      ),
      // Chunk and earlier tokens together have 4,096 at most.
      ...[64, 512, 2048, 4096].flatMap((chunk) =>
        [0, 1024, 2048, 3584]
          .filter((context) => chunk + context <= 4096)
          .map((context) => [0, 0.001, 0.01 + 1e-8 * chunk * (chunk / 2 + context), "", 0, ...tail(1, chunk, context)]),
      ),
    ];
  }),
);
/** Of one sum: 5 us and 1 ns a token. */
const ALL_REDUCE = csv(
  [
    "",
    "time_stats.all_reduce.median",
    ..."rank num_workers size collective devices_per_node max_devices_per_node".split(" "),
  ],
  [2, 4].flatMap((workers) =>
    [1, 1024, 8192].map((tokens, i) => [
      i,
      0.005 + 1e-6 * tokens * (workers - 1),
      0,
      workers,
      tokens * 2 * HIDDEN,
      "all_reduce",
      workers,
      8,
    ]),
  ),
);

function vidurHead(sequences: number, boards: number): number {
  const weights = (32_000 * HIDDEN) / boards;
  const memory = (2 * weights) / (H100.bandwidthTbs * 1e6 * bandwidth);
  const [low, high] = [1, 2048].map((count) =>
    Math.max(memory, (2 * weights * count) / (H100.tflopsPeak * 1e6 * compute)),
  );
  return low! + ((high! - low!) * (sequences - 1)) / 2047;
}

test("Vidur's tables: milliseconds by medians, each kernel once a layer, sums of several boards from their own folder", async (t) => {
  const compute = folderOf({ "mlp.csv": MLP, "attention.csv": VIDUR_ATTENTION });
  const network = folderOf({ "all_reduce.csv": ALL_REDUCE });
  for (const boards of [1, 2]) {
    const steps = await stepsOf(t, boards === 1 ? [compute] : [compute, network], boards);
    const layer = (tokens: number) => 9 * (2 + (1e-3 * tokens) / boards) + (boards === 1 ? 0 : 2 * (5 + 1e-3 * tokens));
    const rest = (tokens: number, sequences: number) =>
      2 + (1e-3 * tokens) / boards + stepMicros + sequenceMicros * sequences + vidurHead(sequences, boards);
    near(steps.micros(decodes(32, 500)), LAYERS * (layer(32) + 11 + 1e-3 * 32 * 500) + rest(32, 32));
    near(steps.micros(prefill(0, 2048)), LAYERS * (layer(2048) + 11 + 1e-5 * 2048 * 1024) + rest(2048, 1));
    // Chunk and context together are beyond what was measured: the slope of the longest chunk that has the context.
    near(steps.micros(prefill(3584, 2048)), LAYERS * (layer(2048) + 11 + 1e-5 * 2048 * (1024 + 3584)) + rest(2048, 1));
  }
});

/** AIConfigurator's columns: github.com/ai-dynamo/aiconfigurator 095f58a, systems/data/h100_sxm/{gemm,attention,comm,moe}/vllm/0.14.0. */
const COMMON = ["framework", "version", "device", "op_name", "kernel_source"];
const head = (name: string) => ["VLLM", "0.14.0", "NVIDIA H100 80GB HBM3", name, "vllm_default"];
const product = (m: number, n: number, k: number) => 3 + 1e-6 * n * k + 1e-9 * m * n * k;
const GEMM = csv(
  [...COMMON, "gemm_dtype", "m", "n", "k", "latency"],
  ["bfloat16", "fp8"].flatMap((type) =>
    [1, 64, 8192].flatMap((m) =>
      [32, 1024, 4096, 16_384, 65_536].flatMap((n) =>
        [32, 1024, 16_384].flatMap((k) => [
          // Of two ways to compute it the quicker one counts.
          [...head("gemm"), type, m, n, k, (product(m, n, k) / 1e3) * (type === "fp8" ? 0.5 : 1)],
          [...head("gemm"), type, m, n, k, product(m, n, k)],
        ]),
      ),
    ),
  ),
);
const ATTENTION_COLUMNS = [
  ...COMMON,
  ..."batch_size isl num_heads num_key_value_heads head_dim beam_width attn_dtype kv_cache_dtype step latency".split(
    " ",
  ),
];
const HEADS = [
  [16, 4],
  [4, 4],
  [4, 2],
] as const;
const prompt = (heads: number, tokens: number) => 10 + 1e-6 * heads * tokens * tokens;
const decode = (heads: number, batch: number, context: number) => 5 + heads + 1e-4 * batch * context;
const CONTEXT_ATTENTION = csv(
  ATTENTION_COLUMNS,
  HEADS.flatMap(([heads, keyHeads]) =>
    [1, 4].flatMap((batch) =>
      [1, 512, 1024, 2048, 4096].map((tokens) => [
        ...head("context_attention"),
        batch,
        tokens,
        heads,
        keyHeads,
        128,
        1,
        "bfloat16",
        "bfloat16",
        0,
        (batch * prompt(heads, tokens)) / 1e3,
      ]),
    ),
  ),
);
const GENERATION_ATTENTION = csv(
  ATTENTION_COLUMNS,
  HEADS.flatMap(([heads, keyHeads]) =>
    [1, 64].flatMap((batch) =>
      [1, 1023, 4095].map((step) => [
        ...head("generation_attention"),
        batch,
        1,
        heads,
        keyHeads,
        128,
        1,
        "bfloat16",
        "bfloat16",
        step,
        decode(heads, batch, step) / 1e3,
      ]),
    ),
  ),
);
const CUSTOM_ALL_REDUCE = csv(
  [...COMMON, "allreduce_dtype", "num_gpus", "message_size", "latency", "backend"],
  [1, 8192].flatMap((tokens) =>
    [1, 4].map((times) => [
      ...head("all_reduce"),
      "bfloat16",
      2,
      tokens * HIDDEN,
      (times * (4 + 0.001 * tokens)) / 1e3,
      times === 1 ? "vllm_graph" : "vllm_eager",
    ]),
  ),
);
const MOE = csv(
  [
    ...COMMON,
    ..."moe_dtype num_tokens hidden_size inter_size topk num_experts moe_tp_size moe_ep_size distribution latency".split(
      " ",
    ),
  ],
  [1, 1024].flatMap((tokens) =>
    ["balanced", "power_law_1.01"].map((way) => [
      ...head("moe"),
      "bfloat16",
      tokens,
      HIDDEN,
      4096,
      2,
      8,
      1,
      1,
      way,
      (way === "balanced" ? 1 : 2) * (0.05 + 1e-5 * tokens),
    ]),
  ),
);
const AI_CONFIGURATOR = {
  "gemm_perf.csv": GEMM,
  "context_attention_perf.csv": CONTEXT_ATTENTION,
  "generation_attention_perf.txt": GENERATION_ATTENTION,
  "custom_allreduce_perf.csv": CUSTOM_ALL_REDUCE,
  "moe_perf.csv": MOE,
};

/** Norms, rotation and activation, and the embedding. */
const bytesPerMicro = H100.bandwidthTbs * 1e6 * bandwidth;
const small = (kernels: number, numbers: number, tokens: number) =>
  3 * kernels + (2 * numbers * tokens) / bytesPerMicro;

test("AIConfigurator's tables: products of sizes between those measured, heads between those measured, sums in numbers", async (t) => {
  const folder = folderOf(AI_CONFIGURATOR);
  for (const boards of [1, 2]) {
    const steps = await stepsOf(t, [folder], boards);
    const layer = (tokens: number) =>
      product(tokens, 2048 / boards, HIDDEN) +
      product(tokens, HIDDEN, HIDDEN / boards) +
      product(tokens, 8192 / boards, HIDDEN) +
      product(tokens, HIDDEN, 4096 / boards) +
      small(4, 8 * HIDDEN + (2 * 12 * 128 + 3 * 4096) / boards, tokens) +
      (boards === 1 ? 0 : 2 * (4 + 1e-3 * tokens));
    const rest = (tokens: number, sequences: number) =>
      small(1, 2 * HIDDEN, tokens) +
      stepMicros +
      sequenceMicros * sequences +
      product(sequences, 32_000 / boards, HIDDEN);
    // Eight heads with four key heads lie between four and sixteen; of two boards four with two were measured.
    const heads = 8 / boards;
    near(steps.micros(decodes(64, 500)), LAYERS * (layer(64) + decode(heads, 64, 500)) + rest(64, 64));
    near(steps.micros(prefill(0, 2048)), LAYERS * (layer(2048) + prompt(heads, 2048)) + rest(2048, 1));
    // Behind as many: three quarters of the pairs of the whole.
    near(steps.micros(prefill(2048, 2048)), LAYERS * (layer(2048) + 0.75 * prompt(heads, 4096)) + rest(2048, 1));
  }
});

test("AIConfigurator's tables: weights of 8 bits have products of their own, a mixture its experts and router", async (t) => {
  const folder = folderOf(AI_CONFIGURATOR);
  const [wide, narrow, mixed] = [
    await stepsOf(t, [folder]),
    await stepsOf(t, [folder], 1, { ...CONFIG, quantization_config: { quant_method: "fp8" } }),
    await stepsOf(t, [folder], 1, MIXTURE),
  ];
  const batch = decodes(64, 500);
  const ofLayer = (tokens: number) =>
    product(tokens, 2048, HIDDEN) + product(tokens, HIDDEN, HIDDEN) + feedForward(tokens);
  const feedForward = (tokens: number) => product(tokens, 8192, HIDDEN) + product(tokens, HIDDEN, 4096);
  near(wide.micros(batch) - narrow.micros(batch), (LAYERS * ofLayer(64)) / 2);
  // Eight columns of a router take what the fewest do that were measured.
  const more = 2 * (50 + 0.01 * 64) + product(64, 32, HIDDEN) - feedForward(64);
  const activation = small(4, 3 * 4096, 64) - small(3, 0, 64);
  near(mixed.micros(batch) - wide.micros(batch), LAYERS * (more - activation));
});

test("a table that is none, lacks columns or the model, or is too large is refused by path, with what is accepted", async (t) => {
  const vidur = { "mlp.csv": MLP, "attention.csv": VIDUR_ATTENTION };
  const large = folderOf(vidur);
  truncateSync(join(large, "attention.csv"), 67_108_865);
  const without = (text: string, name: string) => text.replaceAll(name, "other");
  const changed = (files: Readonly<Record<string, string>>, name: string, text: string | undefined) => ({
    ...files,
    [name]: text,
  });
  const cases: readonly (readonly [string, object, number, RegExp])[] = [
    [
      folderOf({ "x.csv": "a" }),
      CONFIG,
      1,
      /expected LLMServingSim's dense\.csv.*Vidur's mlp\.csv.*AIConfigurator's gemm_perf\.csv/s,
    ],
    [folderOf({ "mlp.csv": MLP }), CONFIG, 1, /expected attention\.csv, got none/],
    [folderOf(vidur), CONFIG, 2, /expected all_reduce\.csv or allreduce\.csv, got none/],
    [
      folderOf(vidur),
      CONFIG,
      4,
      /mlp\.csv: expected rows with .*num_tensor_parallel_workers 4.*, got num_tensor_parallel_workers 1, 2/,
    ],
    [folderOf(vidur), MIXTURE, 1, /expected a dense model for Vidur's tables/],
    [
      folderOf(vidur),
      { ...CONFIG, intermediate_size: 2048 },
      1,
      /mlp\.csv: expected rows with .*, got n_expanded_embd 4096/,
    ],
    [large, CONFIG, 1, /attention\.csv: more than 67108864 bytes/],
    [
      folderOf(changed(vidur, "mlp.csv", without(MLP, "time_stats.mlp_act.median"))),
      CONFIG,
      1,
      /mlp\.csv: expected columns .*time_stats\.mlp_act\.median, .*, got .* without time_stats\.mlp_act\.median/,
    ],
    [
      folderOf(changed(vidur, "mlp.csv", MLP.replace("0.002001", "soon"))),
      CONFIG,
      1,
      /mlp\.csv line 2: expected a number of 0 or more as time_stats\.\w+\.median, got soon/,
    ],
    [folderOf(changed(vidur, "mlp.csv", `${MLP}\n1,2`)), CONFIG, 1, /mlp\.csv line 10: expected 28 columns, got 1,2/],
    [
      folderOf(
        changed(
          vidur,
          "attention.csv",
          VIDUR_ATTENTION.split("\n")
            .filter((line) => !/True/.test(line))
            .join("\n"),
        ),
      ),
      CONFIG,
      1,
      /attention\.csv: expected prefills and decodes, got 0 and 9/,
    ],
    [
      folderOf({
        ...changed(AI_CONFIGURATOR, "context_attention_perf.csv", undefined),
        "context_attention_perf.parquet": "PAR1",
      }),
      CONFIG,
      1,
      /context_attention_perf\.parquet: expected context_attention_perf\.csv, got Parquet alone; write it as CSV: python3/,
    ],
    [
      folderOf(changed(AI_CONFIGURATOR, "gemm_perf.csv", without(GEMM, "gemm_dtype"))),
      CONFIG,
      1,
      /expected columns gemm_dtype, m, n, k, latency/,
    ],
    [
      folderOf(AI_CONFIGURATOR),
      { ...CONFIG, num_attention_heads: 64, head_dim: 128 },
      1,
      /expected num_heads 64 with num_key_value_heads 4, got num_heads 4, 16/,
    ],
    [
      folderOf(AI_CONFIGURATOR),
      { ...CONFIG, num_key_value_heads: 8 },
      1,
      /expected num_heads 8 with num_key_value_heads 8, got num_key_value_heads 4, 2/,
    ],
    [folderOf(AI_CONFIGURATOR), { ...CONFIG, head_dim: 64 }, 1, /expected rows with head_dim 64, .*got head_dim 128/],
    [
      folderOf(AI_CONFIGURATOR),
      { ...MIXTURE, num_local_experts: 16 },
      1,
      /moe_perf\.csv: expected rows with .*num_experts 16.*got num_experts 8/,
    ],
    [
      folderOf(AI_CONFIGURATOR),
      { ...CONFIG, quantization_config: { quant_method: "awq", bits: 4 } },
      1,
      /expected a model in bfloat16 or fp8/,
    ],
    [
      folderOf(AI_CONFIGURATOR),
      CONFIG,
      4,
      /expected num_heads 2 with num_key_value_heads 1|expected rows with num_gpus 4, got num_gpus 2/,
    ],
  ];
  for (const [folder, config, boards, words] of cases) {
    const { code, said } = await gnomon(t, ...flagsOf([folder], boards, config));
    assert.equal(code, 2, said);
    assert.match(said, words);
  }
});
