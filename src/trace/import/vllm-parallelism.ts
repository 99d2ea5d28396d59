import { ImportError } from "./import-report.ts";

/** Ranks of a server at most. */
const RANKS_MAX = 1024;

/** What makes a run of another kind than any that is simulated, with the values that do not. */
const REFUSED = [
  ["pipeline_parallel_size", [1], "batches that follow each other through stages are"],
  ["decode_context_parallel_size", [1], "the keys and values of a sequence on several GPUs are"],
  ["prefill_context_parallel_size", [1], "the keys and values of a sequence on several GPUs are"],
  ["speculative_config", [], "a sequence with several tokens in a step is"],
  ["kv_transfer_config", [], "an engine with keys and values of others is"],
  ["ec_transfer_config", [], "an engine with encoders in others is"],
] as const;

const EXCHANGE =
  "what the GPUs send each other of its tokens is only in step times that were fitted, or in kernel tables";
const LOCKSTEP =
  "the ranks of a mixture of experts take every step together; with step times that were fitted each goes by itself, and " +
  "they know it in the mean";

/**
 * Ranks behind the server's one address, and what of its parallelism is not simulated. Throws ImportError where a
 * simulation would be one of another engine. `setting` gives the value of a setting, undefined where it is not stated.
 */
export function readVllmParallelism(
  path: string,
  setting: (key: string) => unknown,
): { readonly dataParallel: number; readonly notes: readonly string[] } {
  for (const [key, accepted, what] of REFUSED) {
    const value = setting(key);
    if (value === undefined || accepted.some((one) => one === value)) continue;
    const expected = accepted.length === 0 ? "null" : accepted.join(" or ");
    throw new ImportError(`${path}: ${key}: expected ${expected}, got ${shortText(value)}: ${what} not simulated`);
  }
  const dataParallel = ranksOf(path, setting);
  const expertParallel = setting("enable_expert_parallel") === true;
  const notes: string[] = [];
  if (expertParallel) notes.push(`NOT SIMULATED: enable_expert_parallel: ${EXCHANGE}`);
  if (dataParallel > 1 && (expertParallel || setting("is_moe_model") === true))
    notes.push(`NOT SIMULATED: data_parallel_size ${dataParallel}: ${LOCKSTEP}`);
  return { dataParallel, notes };
}

/** All of them, or the server's own where others are behind other addresses. */
function ranksOf(path: string, setting: (key: string) => unknown): number {
  if (setting("data_parallel_external_lb") === true) return 1;
  const key = setting("data_parallel_hybrid_lb") === true ? "data_parallel_size_local" : "data_parallel_size";
  const value = setting(key) ?? 1;
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= RANKS_MAX) return value;
  throw new ImportError(`${path}: ${key}: expected a whole number of 1 to ${RANKS_MAX}, got ${shortText(value)}`);
}

function shortText(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}
