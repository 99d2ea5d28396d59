import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "#config/config-error.ts";
import type { AttentionRow } from "#engine/step-time/attention-grid.ts";
import type { ExpertRow } from "#engine/step-time/expert-time.ts";
import type { CurvePoint, KernelTableSpec } from "#engine/step-time/kernel-table.ts";

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

const FILE_BYTES_MAX = 67_108_864;
const ROWS_MAX = 1_000_000;

/** Kernels of one GPU, as its profiler measured them. */
export interface KernelTables {
  readonly kernels: Omit<KernelTableSpec, "layers">;
  /** Of a mixture of experts. */
  readonly expertRows: readonly ExpertRow[] | undefined;
}

/**
 * Tables of LLMServingSim's profiler (profiler/perf/BOARD/MODEL/bf16/tpN), in microseconds: dense.csv (layer, tokens,
 * time_us), attention.csv (prefill_chunk, kv_prefill, n_decode, kv_decode, time_us), per_sequence.csv (layer, sequences,
 * time_us), and moe.csv (tokens, activated_experts, time_us) of a mixture. Throws ConfigError with file and line.
 */
export function readKernelTables(folder: string): KernelTables {
  const attention = rowsOf(join(folder, "attention.csv"), 5, 0);
  const dense = join(folder, "dense.csv");
  const layer = summed(dense, [LAYER_KERNELS, ONCE_KERNELS]);
  const experts = join(folder, "moe.csv");
  return {
    kernels: {
      kind: "kernel-table",
      layer: layer(LAYER_KERNELS),
      once: layer(ONCE_KERNELS),
      perSequence: summed(join(folder, "per_sequence.csv"), [SEQUENCE_KERNELS])(SEQUENCE_KERNELS),
      attention: attention.map(({ numbers }) => numbers as unknown as AttentionRow),
    },
    expertRows: existsSync(experts)
      ? rowsOf(experts, 3, 0).map(({ numbers }) => numbers as unknown as ExpertRow)
      : undefined,
  };
}

interface Row {
  readonly name: string;
  readonly numbers: readonly number[];
}

/** Times of the kernels of a group, added up by size. A kernel of no group is refused: its time would be missing. */
function summed(file: string, groups: readonly ReadonlyMap<string, number>[]) {
  const rows = rowsOf(file, 3, 1);
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

/** Lines of so many columns, of which the first `names` are words. */
function rowsOf(file: string, columns: number, names: 0 | 1): Row[] {
  const [, ...lines] = textOf(file).trim().split("\n");
  if (lines.length === 0 || lines.length > ROWS_MAX)
    throw new ConfigError([`--from-kernels: ${file}: expected 1 to ${ROWS_MAX} rows, got ${lines.length}`]);
  return lines.map((line, i) => {
    const cells = line.trim().split(",");
    const numbers = cells.slice(names).map(Number);
    if (cells.length !== columns || numbers.some((value, k) => cells[k + names] === "" || !(value >= 0)))
      throw new ConfigError([
        `--from-kernels: ${file} line ${i + 2}: expected ${columns} columns of numbers, got ${line.slice(0, 100)}`,
      ]);
    return { name: names === 1 ? cells[0]! : "", numbers };
  });
}

function textOf(file: string): string {
  try {
    if (statSync(file).size > FILE_BYTES_MAX) throw new Error(`more than ${FILE_BYTES_MAX} bytes`);
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError([
      `--from-kernels: expected ${file}: ${error instanceof Error ? error.message : String(error)}`,
    ]);
  }
}
