import { join } from "node:path";
import { ConfigError } from "#config/config-error.ts";
import type { AttentionRow } from "#engine/step-time/attention-grid.ts";
import type { ExpertRow } from "#engine/step-time/expert-time.ts";
import type { CurvePoint } from "#engine/step-time/kernel-table.ts";
import { fileIn, numbersOf, readCsv } from "./csv-table.ts";
import type { KernelForm, KernelTables } from "./kernel-form.ts";

/** Kernels that run once per layer, and those that run twice. */
const LAYER_KERNELS: ReadonlyMap<string, number> = new Map([
  ["act_fn", 1],
  ["down_proj", 1],
  ["gate_up_proj", 1],
  ["layernorm", 2],
  ["o_proj", 1],
  ["qk_norm", 1],
  ["qkv_proj", 1],
  ["rotary_emb", 1],
]);
const ONCE_KERNELS: ReadonlyMap<string, number> = new Map([
  ["embedding", 1],
  ["final_layernorm", 1],
]);
const SEQUENCE_KERNELS: ReadonlyMap<string, number> = new Map([
  ["lm_head", 1],
  ["sampler", 1],
]);

const NAME = "layer";
const TIME = "time_us";
const ATTENTION = ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode", TIME];
const EXPERTS = ["tokens", "activated_experts", TIME];

/**
 * LLMServingSim's profiler (profiler/perf/BOARD/MODEL/bf16/tpN), in microseconds: dense.csv (layer, tokens, time_us),
 * attention.csv (prefill_chunk, kv_prefill, n_decode, kv_decode, time_us), per_sequence.csv (layer, sequences, time_us),
 * and moe.csv (tokens, activated_experts, time_us) of a mixture.
 */
export const SERVING_SIM: KernelForm = {
  name: "LLMServingSim",
  mark: ["dense.csv"],
  files: "dense.csv, attention.csv, per_sequence.csv, and moe.csv of a mixture",
  read: readServingSimTables,
};

/** Of whatever model the folders are. */
export function readServingSimTables(folders: readonly string[]): KernelTables {
  const file = (name: string) => fileIn(folders, [name]) ?? join(folders[0]!, name);
  const layer = summed(file("dense.csv"), "tokens", [LAYER_KERNELS, ONCE_KERNELS]);
  const experts = fileIn(folders, ["moe.csv"]);
  return {
    kernels: {
      kind: "kernel-table",
      layer: layer(LAYER_KERNELS),
      once: layer(ONCE_KERNELS),
      perSequence: summed(file("per_sequence.csv"), "sequences", [SEQUENCE_KERNELS])(SEQUENCE_KERNELS),
      attention: rowsOf(file("attention.csv"), ATTENTION).map(({ numbers }) => numbers as unknown as AttentionRow),
    },
    expertRows:
      experts === undefined
        ? undefined
        : rowsOf(experts, EXPERTS).map(({ numbers }) => numbers as unknown as ExpertRow),
    exchanged: false,
  };
}

interface Row {
  readonly name: string;
  readonly numbers: readonly number[];
}

/** Times of the kernels of a group, added up by size. A kernel of no group is refused: its time would be missing. */
function summed(file: string, size: string, groups: readonly ReadonlyMap<string, number>[]) {
  const rows = rowsOf(file, [NAME, size, TIME]);
  const unknown = rows.find(({ name }) => !groups.some((group) => group.has(name)));
  if (unknown !== undefined) {
    const known = groups.flatMap((group) => [...group.keys()]).join(", ");
    throw new ConfigError([`--from-kernels: ${file}: expected layers ${known}, got ${unknown.name}`]);
  }
  return (group: ReadonlyMap<string, number>): CurvePoint[] => {
    const points = new Map<number, number>();
    for (const { name, numbers } of rows) {
      const [size = 0, micros = 0] = numbers;
      const times = group.get(name) ?? 0;
      if (times > 0) points.set(size, (points.get(size) ?? 0) + times * micros);
    }
    if (points.size === 0)
      throw new ConfigError([`--from-kernels: ${file}: expected ${[...group.keys()].join(", ")}, got none`]);
    return [...points];
  };
}

/** Rows by these columns, of which the first one may be a name. */
function rowsOf(file: string, columns: readonly string[]): Row[] {
  const table = readCsv(file, columns);
  const named = columns[0] === NAME ? table.columns.indexOf(NAME) : -1;
  const reads = columns.filter((column) => column !== NAME).map((column) => numbersOf(table, column));
  return table.rows.map((cells, row) => ({ name: cells[named] ?? "", numbers: reads.map((read) => read(row)) }));
}
