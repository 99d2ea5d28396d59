import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { calibrateCommand } from "#cli/calibrate/calibrate.ts";
import { loadEngine } from "#config/engine-file.ts";
import { addDecode, addPrefill, emptyShape } from "#engine/step-time/batch-shape.ts";
import { createStepTime } from "#engine/step-time/create-step-time.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-kernels-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const CONFIG = {
  model_type: "llama",
  hidden_act: "silu",
  hidden_size: 1024,
  intermediate_size: 4096,
  num_attention_heads: 8,
  num_hidden_layers: 10,
  num_key_value_heads: 8,
  torch_dtype: "bfloat16",
  vocab_size: 32_000,
};
const MIXTURE = { ...CONFIG, num_local_experts: 8, num_experts_per_tok: 2 };

const TABLES = {
  "dense.csv":
    "layer,tokens,time_us\nqkv_proj,1,10\nqkv_proj,1001,1010\nlayernorm,1,1\nlayernorm,1001,1\nembedding,1,7\n",
  "attention.csv": "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,4,100,9\n100,0,0,0,50\n",
  "per_sequence.csv": "layer,sequences,time_us\nlm_head,1,2\nlm_head,11,12\nsampler,1,1\nsampler,11,1\n",
};

let folders = 0;
function tables(changes: Readonly<Record<string, string>> = {}): string {
  const folder = join(FOLDER, `t${folders++}`);
  mkdirSync(folder);
  for (const [name, text] of Object.entries({ ...TABLES, ...changes })) writeFileSync(join(folder, name), text);
  return folder;
}

function config(name: string, content: object): string {
  const file = join(FOLDER, `${name}.json`);
  writeFileSync(file, JSON.stringify(content));
  return file;
}

const gnomon = (t: TestContext, ...argv: string[]) => inProcess(t, [calibrateCommand()], ["calibrate", ...argv]);

test("tables of measured kernels make an engine whose steps are their sum", async (t) => {
  const file = join(FOLDER, "engine.yaml");
  const dense = ["--model-config", config("dense", CONFIG), "--hardware", "RTX-4090"];
  const { code, said } = await gnomon(t, "--from-kernels", tables(), ...dense, "-o", file);
  assert.equal(code, 0, said);
  const step = createStepTime(loadEngine(file).stepTime);
  const decodes = emptyShape();
  for (let i = 0; i < 4; i++) addDecode(decodes, 100);
  // Four tokens are padded to the graph of four; a layer has its norm twice.
  assert.ok(Math.abs(step.micros(decodes) - (10 * (13 + 2 + 9) + 7 + 6)) < 1e-6);
  const prefill = emptyShape();
  addPrefill(prefill, 0, 100);
  assert.ok(Math.abs(step.micros(prefill) - (10 * (113 + 2 + 50) + 7 + 3)) < 1e-6);
  const two = join(FOLDER, "two.yaml");
  assert.equal((await gnomon(t, "--from-kernels", tables(), ...dense, "--tp", "2", "-o", two)).code, 0);
  assert.ok(createStepTime(loadEngine(two).stepTime).micros(decodes) > step.micros(decodes) + 10 * 2 * 2 * 20);
});

test("ranks of a mixture share its experts: each reads its part for the tokens of all, which are sent around", async (t) => {
  const folder = tables({ "moe.csv": "tokens,activated_experts,time_us\n1,2,20\n100,2,20\n1,8,80\n100,8,80\n" });
  const flags = ["--from-kernels", folder, "--model-config", config("mixture", MIXTURE), "--hardware", "RTX-4090"];
  const engineOf = async (ranks: string) => {
    const file = join(FOLDER, `ranks${ranks}.yaml`);
    const { code, said } = await gnomon(t, ...flags, "--data-parallel", ranks, "-o", file);
    assert.equal(code, 0, said);
    return loadEngine(file);
  };
  const [one, two] = [await engineOf("1"), await engineOf("2")];
  assert.deepEqual([one.dataParallel, two.dataParallel], [1, 2]);
  const batch = emptyShape();
  for (let i = 0; i < 64; i++) addDecode(batch, 100);
  const [alone, both] = [createStepTime(one.stepTime), createStepTime(two.stepTime)];
  // Ten layers: all eight experts, or four of them; 64 states of 1024 numbers out and back, 8 numbers of the router.
  const sent = 10 * (2 * 20 + (64 * 2 * (2 * 1024 + 8)) / 16e3);
  const saved = alone.micros(batch) - (both.together!([batch, batch]) - sent);
  assert.ok(Math.abs(saved - 10 * 40) < 1, `${saved}`);
});

test("what tables lack, or have too much, is refused by file", async (t) => {
  const onBoard = ["--hardware", "H100"];
  const dense = ["--model-config", config("dense", CONFIG), ...onBoard];
  for (const [folder, flags, words] of [
    [tables(), [], /expected together with --model-config and --hardware/],
    [tables(), ["--model-config", config("mixture", MIXTURE), ...onBoard], /expected moe\.csv for a mixture, got none/],
    [
      tables({ "moe.csv": "tokens,activated_experts,time_us\n1,2,5\n" }),
      dense,
      /expected no moe\.csv for a dense model/,
    ],
    [
      tables({ "dense.csv": "layer,tokens,time_us\nconv,1,10\n" }),
      dense,
      /dense\.csv: expected layers act_fn, .*, got conv/,
    ],
    [
      tables({ "attention.csv": "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n1,2,x,4,5\n" }),
      dense,
      /attention\.csv line 2: expected a number of 0 or more as n_decode, got x/,
    ],
    [
      tables({ "attention.csv": "a\n1\n" }),
      dense,
      /attention\.csv: expected columns prefill_chunk, kv_prefill, n_decode, kv_decode, time_us, got a/,
    ],
    [join(FOLDER, "absent"), dense, /--from-kernels: .*absent: expected LLMServingSim's .*attention\.csv/],
    [tables(), ["--model-config", config("dense", CONFIG), "--hardware", "H1000"], /--hardware: .*H100/],
  ] as const) {
    const { code, said } = await gnomon(t, "--from-kernels", folder, ...flags);
    assert.equal(code, 2, said);
    assert.match(said, words);
  }
});
