import { stat } from "node:fs/promises";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { ImportError, type ImportReport } from "./import-report.ts";
import { REQUEST_TOKENS_MAX } from "#core/base/units.ts";
import { parseRecord } from "./json-record.ts";
import { unreadable } from "./unreadable.ts";
import { unmarkedText } from "./unmarked-text.ts";

/** A larger result is no run of a client. */
const FILE_BYTES_MAX = 536_870_912;

/** What the beginning of such a file has. */
export const VLLM_BENCH_KEYS = ['"input_lens"', '"request_throughput"'];

/**
 * A result of `vllm bench serve --save-result --save-detailed` (`benchmark_serving.py` before): when each request was sent
 * and its lengths. Requests that failed are left out. It holds nothing of what prompts share.
 */
export async function* readVllmBench(path: string, report: ImportReport): AsyncGenerator<WorkloadRequest> {
  const result = await resultOf(path);
  const [starts, inputs, outputs] = ["start_times", "input_lens", "output_lens"].map((key) => listOf(result, key));
  const errors = listOf(result, "errors");
  if (starts === undefined || inputs === undefined || outputs === undefined)
    throw new ImportError(`${path}: expected start_times, input_lens and output_lens, as --save-detailed writes them`);
  if (starts.length !== inputs.length || starts.length !== outputs.length)
    throw new ImportError(
      `${path}: expected lists of one length, got ${starts.length}, ${inputs.length}, ${outputs.length}`,
    );
  const order = starts.map((_start, i) => i).toSorted((a, b) => Number(starts[a]) - Number(starts[b]));
  const [first = 0] = order;
  const model = typeof result["model_id"] === "string" ? result["model_id"] : "";
  for (const i of order) {
    report.records++;
    const place = `${path}: request ${i}`;
    const [start, promptTokens, outputTokens] = [starts[i], inputs[i], outputs[i]];
    if (typeof errors?.[i] === "string" && errors[i] !== "") report.refuse(place, "it failed");
    else if (typeof start !== "number" || !Number.isFinite(start)) report.refuse(place, "start_times is not a number");
    else if (!isCount(promptTokens) || promptTokens === 0) report.refuse(place, "input_lens is not a number >= 1");
    else if (!isCount(outputTokens) || outputTokens === 0) report.refuse(place, "output_lens is not a number >= 1");
    else {
      const arrivalMicros = Math.max(0, Math.round((start - Number(starts[first])) * MICROS_PER_SECOND));
      yield { ...LENGTHS_ONLY, index: report.accept(), arrivalMicros, promptTokens, outputTokens, model };
    }
  }
}

async function resultOf(path: string): Promise<Readonly<Record<string, unknown>>> {
  let text: string;
  try {
    if ((await stat(path)).size > FILE_BYTES_MAX)
      throw new ImportError(`${path}: expected at most ${FILE_BYTES_MAX} bytes`);
    text = await unmarkedText(path);
  } catch (error) {
    throw error instanceof ImportError ? error : new ImportError(`${path}: ${unreadable(error)}`);
  }
  const record = parseRecord(text);
  if (typeof record === "string") throw new ImportError(`${path}: ${record}`);
  return record;
}

function listOf(result: Readonly<Record<string, unknown>>, key: string): readonly unknown[] | undefined {
  const value = result[key];
  return Array.isArray(value) ? (value as readonly unknown[]) : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= REQUEST_TOKENS_MAX;
}
