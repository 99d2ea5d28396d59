import { ConfigError } from "#config/config-error.ts";
import type { AttentionRow } from "#engine/step-time/attention-grid.ts";
import type { CurvePoint } from "#engine/step-time/kernel-table.ts";
import { Curve } from "#engine/step-time/curve.ts";
import { type CsvTable, fileIn, numbersOf, readCsv, rowsWith } from "./csv-table.ts";
import { curveOf, prefillRows, sumOf, thinned } from "./curves.ts";
import type { KernelForm, KernelTarget } from "./kernel-form.ts";
import { hostPart, modelledHead } from "./rest-of-step.ts";

/** Medians of so many milliseconds, under these names. */
const LAYER = ["attn_pre_proj", "attn_rope", "attn_post_proj", "mlp_up_proj", "mlp_act", "mlp_down_proj"] as const;
/** Not every model has all of them: what is empty takes no time. */
const LAYER_MAYBE = ["input_layernorm", "post_attention_layernorm", "add"] as const;
const BESIDE_ATTENTION = ["attn_input_reshape", "attn_kv_cache_save", "attn_output_reshape"] as const;
const MLP_COLUMNS = ["n_head", "n_kv_head", "n_embd", "n_expanded_embd", "num_tokens", "num_tensor_parallel_workers"];
const ATTENTION_COLUMNS = [
  "n_embd",
  "n_q_head",
  "n_kv_head",
  "num_tensor_parallel_workers",
  "batch_size",
  "prefill_chunk_size",
  "kv_cache_size",
];
const REDUCE_COLUMNS = ["num_workers", "devices_per_node", "size", "collective"];

/** Of the thousands of sizes that are measured; between them times are straight lines. */
const TOKENS_APART = 1.1;
const GRID_APART = 1.25;
/** A state's number in all_reduce.csv. */
const STATE_BYTES = 2;

/**
 * Vidur's profiler (github.com/microsoft/vidur, data/profiling), in milliseconds: mlp.csv and attention.csv of
 * compute/BOARD/MODEL, and for several boards all_reduce.csv of network/NODE. The output head is not measured.
 */
export const VIDUR: KernelForm = {
  name: "Vidur",
  mark: ["mlp.csv"],
  files: "mlp.csv, attention.csv, and all_reduce.csv for several boards (both folders, if they are in two)",
  read: (folders, target) => {
    if (target.model.shape.experts !== undefined)
      throw new ConfigError(["--from-kernels: expected a dense model for Vidur's tables, got a mixture of experts"]);
    const { tensorParallel } = target;
    const mlp = readCsv(found(folders, ["mlp.csv"]), [...MLP_COLUMNS, ...LAYER.map(median)]);
    const rows = rowsWith(mlp, { ...shapeOf(target, "n_head"), n_expanded_embd: target.model.shape.intermediate });
    const curve = (name: string, otherwise?: number) => curveOver(mlp, rows, name, otherwise);
    const layer = [...LAYER.map((name) => curve(name)), ...LAYER_MAYBE.map((name) => curve(name, 0))];
    const sums = tensorParallel > 1 ? [[2, allReduce(folders, target)] as const] : [];
    return {
      kernels: {
        kind: "kernel-table",
        layer: sumOf([...layer.map((points) => [1, points] as const), ...sums]),
        once: curve("emb", 0),
        ...hostPart(target, modelledHead(target)),
        attention: attention(folders, target),
      },
      expertRows: undefined,
      exchanged: true,
    };
  },
};

function shapeOf({ model: { shape }, tensorParallel }: KernelTarget, heads: string): Record<string, number> {
  return {
    n_embd: shape.hidden,
    [heads]: shape.heads,
    n_kv_head: shape.kvHeads,
    num_tensor_parallel_workers: tensorParallel,
  };
}

function found(folders: readonly string[], names: readonly string[]): string {
  const file = fileIn(folders, names);
  if (file === undefined)
    throw new ConfigError([`--from-kernels: ${folders.join(", ")}: expected ${names.join(" or ")}, got none`]);
  return file;
}

function median(name: string): string {
  return `time_stats.${name}.median`;
}

function curveOver(table: CsvTable, rows: readonly number[], name: string, otherwise?: number): CurvePoint[] {
  const tokens = numbersOf(table, "num_tokens");
  const millis = numbersOf(table, median(name), otherwise);
  return curveOf(
    rows.map((row) => [tokens(row), 1e3 * millis(row)]),
    TOKENS_APART,
  );
}

/** Of one sum over all boards, by tokens. */
function allReduce(folders: readonly string[], { model, tensorParallel }: KernelTarget): CurvePoint[] {
  const table = readCsv(found(folders, ["all_reduce.csv", "allreduce.csv"]), [...REDUCE_COLUMNS, median("all_reduce")]);
  const rows = rowsWith(table, {
    collective: "all_reduce",
    num_workers: tensorParallel,
    devices_per_node: tensorParallel,
  });
  const [bytes, millis] = [numbersOf(table, "size"), numbersOf(table, median("all_reduce"))];
  const bytesPerToken = model.shape.hidden * STATE_BYTES;
  return curveOf(
    rows.map((row) => [bytes(row) / bytesPerToken, 1e3 * millis(row)]),
    TOKENS_APART,
  );
}

/** Decodes by their number and context; prefills one at a time, as far as chunk and context together were measured. */
function attention(folders: readonly string[], target: KernelTarget): AttentionRow[] {
  const table = readCsv(found(folders, ["attention.csv"]), [
    ...ATTENTION_COLUMNS,
    median("attn_prefill"),
    median("attn_decode"),
  ]);
  const shape = shapeOf(target, "n_q_head");
  const [batch, chunk, context] = ["batch_size", "prefill_chunk_size", "kv_cache_size"].map((name) =>
    numbersOf(table, name),
  ) as [(row: number) => number, (row: number) => number, (row: number) => number];
  const beside = BESIDE_ATTENTION.map((name) => numbersOf(table, median(name), 0));
  const [prefill, decode] = [numbersOf(table, median("attn_prefill")), numbersOf(table, median("attn_decode"))];
  const microsOf = (row: number) =>
    1e3 * ((chunk(row) > 0 ? prefill(row) : decode(row)) + beside.reduce((sum, millis) => sum + millis(row), 0));

  const rows = rowsWith(table, shape);
  const [prefills, decodes] = [rows.filter((row) => chunk(row) > 0), rows.filter((row) => chunk(row) === 0)];
  if (prefills.length === 0 || decodes.length === 0)
    throw new ConfigError([
      `--from-kernels: ${table.file}: expected prefills and decodes, got ${prefills.length} and ${decodes.length}`,
    ]);
  const [batches, contexts] = [thinned(decodes.map(batch), GRID_APART), thinned(decodes.map(context), GRID_APART)];
  const measured = decodes
    .filter((row) => batches.includes(batch(row)) && contexts.includes(context(row)))
    .map((row): AttentionRow => [0, 0, batch(row), context(row), microsOf(row)]);

  const byChunk = [...Map.groupBy(prefills, chunk)].sort(([a], [b]) => a - b);
  const chunks = byChunk.map(([tokens, own]) => ({
    tokens,
    last: Math.max(...own.map(context)),
    curve: new Curve(
      curveOf(
        own.map((row) => [context(row), microsOf(row)]),
        1,
      ),
    ),
  }));
  const micros = (tokens: number, before: number): number => {
    const own = chunks.find((one) => one.tokens === tokens)!;
    // A long chunk was measured behind few tokens: what more of them cost a shorter one, they cost each of its tokens.
    const reaching = chunks.findLast((one) => one.tokens <= tokens && one.last >= before) ?? chunks[0]!;
    if (reaching === own) return own.curve.at(before);
    const more = reaching.curve.at(before) - reaching.curve.at(own.last);
    return own.curve.at(own.last) + (Math.max(0, more) * tokens) / reaching.tokens;
  };
  const lengths = thinned(
    chunks.map(({ tokens }) => tokens),
    GRID_APART,
  );
  return [...distinct(measured), ...prefillRows(lengths, thinned(prefills.map(context), GRID_APART), micros)];
}

/** The first where one point was measured more than once. */
function distinct(rows: readonly AttentionRow[]): AttentionRow[] {
  return [...new Map(rows.toReversed().map((row) => [`${row[2]} ${row[3]}`, row])).values()].toReversed();
}
