import { ConfigError } from "#config/config-error.ts";
import { achievedBy } from "#engine/achieved.ts";
import type { AttentionRow } from "#engine/step-time/attention-grid.ts";
import { Curve } from "#engine/step-time/curve.ts";
import type { ExpertRow } from "#engine/step-time/expert-time.ts";
import type { CurvePoint } from "#engine/step-time/kernel-table.ts";
import { headSizeOf, type ModelShape } from "#engine/step-time/model-shape.ts";
import { type CsvTable, fileIn, numbersOf, readCsv, rowsWith } from "./csv-table.ts";
import { prefillRows, quickest, sumOf } from "./curves.ts";
import type { KernelForm, KernelTarget } from "./kernel-form.ts";
import { ProductTimes } from "./product-times.ts";
import { hostPart } from "./rest-of-step.ts";

const GEMM = ["gemm_dtype", "m", "n", "k", "latency"];
const ATTENTION = [
  "batch_size",
  "isl",
  "num_heads",
  "num_key_value_heads",
  "head_dim",
  "kv_cache_dtype",
  "step",
  "latency",
];
const REDUCE = ["num_gpus", "message_size", "latency"];
const MOE = [
  "moe_dtype",
  "num_tokens",
  "hidden_size",
  "inter_size",
  "topk",
  "num_experts",
  "moe_tp_size",
  "moe_ep_size",
  "distribution",
  "latency",
];
/** How tokens choose experts: nearest to what routers do first. */
const DISTRIBUTIONS = ["power_law_1.01", "power_law_1.2", "balanced"];

/** A kernel that only moves numbers takes so long beside its bytes. */
const SMALL_KERNEL_MICROS = 3;

/**
 * NVIDIA AIConfigurator's collected tables (github.com/ai-dynamo/aiconfigurator, systems/data/BOARD/*\/vllm/VERSION), in
 * milliseconds, each as .csv or .txt. Norms, rotations, activations and embedding are not measured: their bytes and
 * SMALL_KERNEL_MICROS each.
 */
export const AI_CONFIGURATOR: KernelForm = {
  name: "AIConfigurator",
  mark: namesOf("gemm_perf"),
  files:
    "gemm_perf.csv, context_attention_perf.csv, generation_attention_perf.csv, custom_allreduce_perf.csv for several " +
    "boards, and moe_perf.csv of a mixture (any number of folders; Parquet has to be written as CSV first)",
  read: (folders, target) => {
    const { model, tensorParallel } = target;
    const { shape } = model;
    const missing = [
      shape.latent !== undefined && "latent attention",
      shape.window !== undefined && "layers with a window",
      shape.denseLayers !== undefined && "layers without experts in a mixture",
    ].find((name) => name !== false);
    if (missing !== undefined)
      throw new ConfigError([`--from-kernels: expected a model without ${missing} for AIConfigurator's tables`]);
    const products = productsIn(folders, target);
    const layer: (readonly [number, readonly CurvePoint[]])[] = [
      ...productsOf(target).map(([n, k, isWide]) => [1, products(isWide).curve(n, k)] as const),
      [1, smallKernels(target)],
    ];
    if (tensorParallel > 1) layer.push([2, allReduce(folders, target)]);
    const decoding = decodes(folders, target);
    return {
      kernels: {
        kind: "kernel-table",
        layer: sumOf(layer),
        once: moved(target, 2 * shape.hidden),
        ...hostPart(target, products(true).curve(model.vocabulary / tensorParallel, shape.hidden)),
        attention: [...prefills(folders, target, decoding), ...decoding],
      },
      expertRows: shape.experts === undefined ? undefined : experts(folders, target),
      exchanged: true,
    };
  },
};

function namesOf(table: string): string[] {
  return [`${table}.csv`, `${table}.txt`];
}

function tableIn(folders: readonly string[], name: string, columns: readonly string[]): CsvTable {
  const file = fileIn(folders, namesOf(name));
  if (file !== undefined) return readCsv(file, columns);
  const parquet = fileIn(folders, [`${name}.parquet`]);
  throw new ConfigError([
    parquet === undefined
      ? `--from-kernels: ${folders.join(", ")}: expected ${name}.csv, got none`
      : `--from-kernels: ${parquet}: expected ${name}.csv, got Parquet alone; write it as CSV: python3 -c "import ` +
        `pandas, sys; pandas.read_parquet(sys.argv[1]).to_csv(sys.argv[2], index=False)" ${parquet} ${name}.csv`,
  ]);
}

/** By whether weights have 16 bits, as the output head's, or what the model's are. */
function productsIn(folders: readonly string[], { model }: KernelTarget): (isWide: boolean) => ProductTimes {
  const table = tableIn(folders, "gemm_perf", GEMM);
  const [m, n, k, millis] = ["m", "n", "k", "latency"].map((name) => numbersOf(table, name)) as [
    Read,
    Read,
    Read,
    Read,
  ];
  const ofType = (type: string) =>
    new ProductTimes(
      table.file,
      rowsWith(table, { gemm_dtype: type }).map((row) => [m(row), n(row), k(row), 1e3 * millis(row)]),
    );
  const wide = ofType("bfloat16");
  const type = weightType(model.shape);
  const own = type === "bfloat16" ? wide : ofType(type);
  return (isWide) => (isWide ? wide : own);
}

type Read = (row: number) => number;

function weightType({ weightBytes, bytesPerParameter, narrowMultiply }: ModelShape): "bfloat16" | "fp8" {
  if (weightBytes === undefined && bytesPerParameter === 2) return "bfloat16";
  if ((weightBytes ?? bytesPerParameter) === 1 && narrowMultiply === true) return "fp8";
  throw new ConfigError([
    `--from-kernels: expected a model in bfloat16 or fp8 for AIConfigurator's tables, got ${weightBytes ?? bytesPerParameter} bytes a weight`,
  ]);
}

/** Products of a layer on one board: columns, shared size, and whether the weights have 16 bits all the same. */
function productsOf({ model: { shape }, tensorParallel: boards }: KernelTarget): [number, number, boolean][] {
  const { hidden, heads, kvHeads, experts, mlpMatrices } = shape;
  const size = headSizeOf(shape);
  const isWide = (shape.attentionWeightBytes ?? 0) > 1;
  const queries = (heads / boards) * size;
  const list: [number, number, boolean][] = [
    [queries + 2 * Math.ceil(kvHeads / boards) * size, hidden, isWide],
    [hidden, queries, isWide],
  ];
  const feedForward = (width: number) => {
    list.push([((mlpMatrices - 1) * width) / boards, hidden, false], [hidden, width / boards, false]);
  };
  if (experts === undefined) feedForward(shape.intermediate);
  else {
    list.push([experts.count, hidden, true]);
    if ((experts.sharedIntermediate ?? 0) > 0) feedForward(experts.sharedIntermediate!);
  }
  return list;
}

/** A kernel that moves so many numbers of 16 bits for each token. */
function moved({ board }: KernelTarget, numbersPerToken: number, kernels = 1): CurvePoint[] {
  const bytesPerMicro = board.bandwidthTbs * 1e6 * achievedBy(board.generation).bandwidth;
  return [0, TOKENS_FAR].map((tokens) => [
    tokens,
    kernels * SMALL_KERNEL_MICROS + (2 * numbersPerToken * tokens) / bytesPerMicro,
  ]);
}
const TOKENS_FAR = 8192;

/** Of a layer: two norms that add to the state, the rotation, the activation of the feed-forward block. */
function smallKernels(target: KernelTarget): CurvePoint[] {
  const { shape } = target.model;
  const [heads, width] = [shape.heads + shape.kvHeads, shape.experts === undefined ? shape.intermediate : 0];
  const split = (2 * heads * headSizeOf(shape) + shape.mlpMatrices * width) / target.tensorParallel;
  return moved(target, 2 * 4 * shape.hidden + split, width > 0 ? 4 : 3);
}

/** One sum over all boards by tokens; a message's size is in numbers. Within a graph where both were measured. */
function allReduce(folders: readonly string[], { model, tensorParallel }: KernelTarget): CurvePoint[] {
  const table = tableIn(folders, "custom_allreduce_perf", REDUCE);
  const [size, millis] = [numbersOf(table, "message_size"), numbersOf(table, "latency")];
  const rows = rowsWith(table, { num_gpus: tensorParallel });
  const points = rows.map((row): CurvePoint => [size(row) / model.shape.hidden, 1e3 * millis(row)]);
  return quickest(points).sort(([a], [b]) => a - b);
}

/**
 * Rows of the model's heads on one board, as [batch, tokens or context, microseconds]: of the two numbers of query heads
 * about it where its own was not measured.
 */
function ofHeads(table: CsvTable, { model: { shape }, tensorParallel }: KernelTarget, size: "isl" | "step") {
  const [heads, kvHeads] = [shape.heads / tensorParallel, Math.ceil(shape.kvHeads / tensorParallel)];
  const optional = (name: string, value: number) => (table.columns.includes(name) ? { [name]: value } : {});
  const rows = rowsWith(table, {
    head_dim: headSizeOf(shape),
    kv_cache_dtype: (shape.kvBytes ?? 2) === 1 ? "fp8" : "bfloat16",
    ...optional("window_size", 0),
    ...optional("beam_width", 1),
  });
  const [count, kvCount] = [numbersOf(table, "num_heads"), numbersOf(table, "num_key_value_heads")];
  // A query head for each key head is written as it is, or as none.
  const own = rows.filter((row) => kvCount(row) === kvHeads || (heads === kvHeads && kvCount(row) === 0));
  const there = [...new Set(own.map(count))].sort((a, b) => a - b);
  const [below, above] = [there.findLast((one) => one <= heads), there.find((one) => one >= heads)];
  if (below === undefined || above === undefined)
    throw new ConfigError([
      `--from-kernels: ${table.file}: expected num_heads ${heads} with num_key_value_heads ${kvHeads}, got ` +
        (there.length > 0
          ? `num_heads ${there.join(", ")}`
          : `num_key_value_heads ${[...new Set(rows.map(kvCount))].join(", ")}`),
    ]);
  const [batch, length, millis] = ["batch_size", size, "latency"].map((name) => numbersOf(table, name)) as [
    Read,
    Read,
    Read,
  ];
  const timesOf = (number: number) => {
    const times = new Map<string, readonly [number, number, number]>();
    for (const row of own) {
      if (count(row) !== number) continue;
      const key = `${batch(row)} ${length(row)}`;
      const micros = Math.min(1e3 * millis(row), times.get(key)?.[2] ?? Infinity);
      times.set(key, [batch(row), length(row), micros]);
    }
    return times;
  };
  const [low, high] = [timesOf(below), timesOf(above)];
  const part = above === below ? 0 : (heads - below) / (above - below);
  return [...low].flatMap(([key, [many, long, micros]]) => {
    const other = high.get(key);
    return other === undefined ? [] : [[many, long, micros + part * (other[2] - micros)] as const];
  });
}

/** One at a time. Behind earlier tokens: the part of the whole prompt's pairs that are its own, at least reading those. */
function prefills(folders: readonly string[], target: KernelTarget, decoding: readonly AttentionRow[]): AttentionRow[] {
  const table = tableIn(folders, "context_attention_perf", ATTENTION);
  const whole = ofHeads(table, target, "isl").filter(([batch]) => batch === 1);
  const single = decoding.filter(([, , number]) => number === 1);
  if (whole.length < 2 || single.length < 2)
    throw new ConfigError([`--from-kernels: ${table.file}: expected prompts and decodes of batch_size 1, got none`]);
  const prompts = new Curve(whole.map(([, tokens, micros]) => [tokens, micros]));
  const reading = new Curve(single.map(([, , , context, micros]) => [context, micros]));
  const lengths = whole.map(([, tokens]) => tokens).sort((a, b) => a - b);
  return prefillRows(lengths, [0, ...lengths], (tokens, context) => {
    const all = tokens + context;
    const part = context === 0 ? 1 : (all * all - context * context) / (all * all);
    return Math.max(prompts.at(all) * part, context === 0 ? 0 : reading.at(context), prompts.at(tokens));
  });
}

function decodes(folders: readonly string[], target: KernelTarget): AttentionRow[] {
  const table = tableIn(folders, "generation_attention_perf", ATTENTION);
  return ofHeads(table, target, "step").map(([batch, context, micros]) => [0, 0, batch, context, micros]);
}

/** The feed-forward block of a layer by tokens, all experts counted as used: how many are is in the measured choices. */
function experts(folders: readonly string[], { model: { shape }, tensorParallel }: KernelTarget): ExpertRow[] {
  const table = tableIn(folders, "moe_perf", MOE);
  const { count, perToken } = shape.experts!;
  const wanted = {
    moe_dtype: weightType(shape),
    hidden_size: shape.hidden,
    inter_size: shape.intermediate,
    topk: perToken,
    num_experts: count,
    moe_tp_size: tensorParallel,
    moe_ep_size: 1,
  };
  const rows = rowsWith(table, wanted);
  const place = table.columns.indexOf("distribution");
  const chosen = DISTRIBUTIONS.find((name) => rows.some((row) => table.rows[row]![place] === name));
  if (chosen === undefined) rowsWith(table, { ...wanted, distribution: DISTRIBUTIONS[0]! });
  const [tokens, millis] = [numbersOf(table, "num_tokens"), numbersOf(table, "latency")];
  const own = rows.filter((row) => table.rows[row]![place] === chosen);
  const points = quickest(own.map((row): CurvePoint => [tokens(row), 1e3 * millis(row)]));
  return points.map(([number, micros]) => [number, count, micros]);
}
