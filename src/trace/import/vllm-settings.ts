import { existsSync, readFileSync } from "node:fs";
import type { TraceEngine } from "../codec/record.ts";
import { ImportError } from "./import-report.ts";
import { isRecord, type JsonRecord, parseRecord, textField } from "./json-record.ts";
import { unreadable } from "./unreadable.ts";
import { readVllmParallelism } from "./vllm-parallelism.ts";

/** What a run's meta.json states. */
export interface VllmSettings {
  readonly engine: TraceEngine;
  /** Model that was served; "" where it is stated otherwise than by a name. */
  readonly model: string;
  /** vLLM's; "" where it is not stated. */
  readonly version: string;
  readonly notes: readonly string[];
}

/** Where vLLM's settings stand in the files of different benchmarks, the most exact first. */
const SECTIONS = [
  ["engine"],
  ["kv_cache"],
  ["resolved_config", "cache_config"],
  ["resolved_config", "scheduler_config"],
  ["resolved_config", "model_config"],
  ["resolved_config", "parallel_config"],
  ["resolved_config"],
  ["engine_kwargs"],
  [],
] as const;

/** With the least and the greatest value that an engine can be simulated with. */
const SIZES = [
  ["blockTokens", ["block_size"], 1, 4096],
  ["kvBlocks", ["num_gpu_blocks"], 2, 1e8],
  ["sequencesMax", ["max_num_active_seqs", "max_num_seqs"], 1, 1e6],
  ["batchTokensMax", ["max_num_batched_tokens"], 1, 1e7],
  ["longPrefillTokens", ["long_prefill_token_threshold"], 0, 1e7],
  ["modelTokensMax", ["max_model_len"], 1, 1e8],
] as const;
const SWITCHES = [
  ["prefixCaching", ["enable_prefix_caching", "prefix_caching"]],
  ["reserveFullPrompt", ["scheduler_reserve_full_isl"]],
  ["chunkedPrefill", ["enable_chunked_prefill", "chunked_prefill"]],
  ["asyncScheduling", ["async_scheduling"]],
] as const;

/** What changes an engine but cannot be set of a simulated one here, and the values that change nothing. */
const NOT_SIMULATED = [
  ["watermark", 0],
  ["scheduling_policy", "fcfs"],
  ["policy", "fcfs"],
  ["enable_dbo", false],
  ["enable_eplb", false],
] as const;

/** From this version on vLLM composes a step while the one before runs, unless configured otherwise. */
const ASYNC_SINCE = { major: 0, minor: 14 };

/** Reads meta.json; throws ImportError when it cannot be read, or a setting in it is no setting. */
export function readVllmSettings(path: string): VllmSettings {
  if (!existsSync(path)) throw new ImportError(`${path}: expected the settings of the run, got no such file`);
  const meta = parseRecord(textAt(path));
  if (typeof meta === "string")
    throw new ImportError(`${path}: expected the settings of the run, got a file that is ${meta}`);
  const sections = SECTIONS.map((keys) => sectionAt(meta, keys));
  const engine: Record<string, number | boolean> = {};
  for (const [name, keys, min, max] of SIZES) {
    const value = first(sections, keys);
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || Number(value) < min || Number(value) > max)
      throw new ImportError(
        `${path}: ${keys.at(-1)}: expected a whole number of ${min} to ${max}, got ${JSON.stringify(value)}`,
      );
    engine[name] = Number(value);
  }
  for (const [name, keys] of SWITCHES) {
    const value = first(sections, keys);
    if (value === undefined) continue;
    const switched = switchOf(value);
    if (switched === undefined)
      throw new ImportError(`${path}: ${keys[0]}: expected true or false, got ${JSON.stringify(value)}`);
    engine[name] = switched;
  }
  const { dataParallel, notes: parallel } = readVllmParallelism(path, (key) => first(sections, [key]));
  if (dataParallel > 1) engine["dataParallel"] = dataParallel;
  const notes: string[] = [...parallel];
  const version = textOf(first(sections, ["vllm_version", "vllm"]));
  if (engine["asyncScheduling"] === undefined && isAsyncByDefault(version)) {
    engine["asyncScheduling"] = true;
    notes.push(`asyncScheduling true: not stated, the default of vLLM ${version}`);
  }
  const unknown = SIZES.filter(([name]) => engine[name] === undefined).map(([, keys]) => keys.at(-1));
  if (unknown.length > 0) notes.push(`meta.json does not state ${unknown.join(", ")}`);
  const other = NOT_SIMULATED.map(([key, usual]) => [key, first(sections, [key]) ?? usual, usual] as const)
    .filter(([, value, usual]) => value !== usual)
    .map(([key, value]) => `${key} ${JSON.stringify(value)}`);
  if (other.length > 0) notes.push(`not simulated: ${other.join(", ")}`);
  const model = textOf(first(sections, ["model"]));
  return { engine, model: /^\S+$/.test(model) ? model : "", version, notes };
}

function textAt(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ImportError(`${path}: ${unreadable(error)}`);
  }
}

function sectionAt(meta: JsonRecord, keys: readonly string[]): JsonRecord {
  let section: unknown = meta;
  for (const key of keys) section = isRecord(section) ? section[key] : undefined;
  return isRecord(section) ? section : {};
}

/** The first value that is there; null is as good as nothing. */
function first(sections: readonly JsonRecord[], keys: readonly string[]): unknown {
  for (const section of sections) {
    for (const key of keys) if (section[key] !== undefined && section[key] !== null) return section[key];
  }
  return undefined;
}

/** True or false, also as "on" or "default (off)"; undefined for anything else. */
function switchOf(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  const word = typeof value === "string" ? /^(?:default \()?(on|off)\)?$/.exec(value)?.[1] : undefined;
  return word === undefined ? undefined : word === "on";
}

function textOf(value: unknown): string {
  return textField({ value }, "value") ?? "";
}

/** Never on CPUs. */
function isAsyncByDefault(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (major === undefined || /cpu/i.test(version)) return false;
  return Number(major) > ASYNC_SINCE.major || Number(minor) >= ASYNC_SINCE.minor;
}
