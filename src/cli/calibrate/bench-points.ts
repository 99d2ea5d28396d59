import { readFileSync, statSync } from "node:fs";
import { ConfigError } from "#config/config-error.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { SteadyPoint } from "#shadow/calibrate/steady-fit.ts";

const FILE_BYTES_MAX = 536_870_912;
const POINTS_MAX = 100;

/**
 * Measurements of `vllm bench serve --save-result`, a file each, or of `vllm bench sweep serve`, a list of such results
 * in one. Each with `--max-concurrency`: arrivals at a rate are a queue, whose mean is one draw. Throws ConfigError.
 */
export function benchPoints(files: readonly string[]): SteadyPoint[] {
  const points = files.flatMap((file) => {
    const content = jsonOf(file);
    const results: readonly unknown[] = Array.isArray(content) ? content : [content];
    return results.map((result, i) => pointOf(result, results.length > 1 ? `${file}[${i}]` : file));
  });
  if (points.length > POINTS_MAX)
    throw new ConfigError([`--from-bench: expected at most ${POINTS_MAX} results, got ${points.length}`]);
  return points;
}

function jsonOf(file: string): unknown {
  try {
    if (statSync(file).size > FILE_BYTES_MAX) throw new Error(`more than ${FILE_BYTES_MAX} bytes`);
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError([`--from-bench: expected a result of vllm bench serve, got ${file}: ${reason}`]);
  }
}

function pointOf(value: unknown, place: string): SteadyPoint {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ConfigError([`--from-bench: ${place}: expected an object as vllm bench serve --save-result writes it`]);
  const fields = new Map<string, unknown>(Object.entries(value));
  const problems: string[] = [];
  const number = (key: string): number => {
    const found = fields.get(key);
    if (typeof found === "number" && Number.isFinite(found) && found > 0) return found;
    problems.push(`--from-bench: ${place}: ${key}: expected a number above 0, got ${JSON.stringify(found)}`);
    return 1;
  };
  const rate = fields.get("request_rate");
  if (rate !== undefined && rate !== "inf" && rate !== null)
    problems.push(
      `--from-bench: ${place}: request_rate: expected inf, with --max-concurrency, got ${JSON.stringify(rate)}`,
    );
  const requests = number("completed");
  // Without a limit all are sent at once.
  const users = (fields.get("max_concurrency") ?? undefined) === undefined ? requests : number("max_concurrency");
  const point = {
    users: Math.min(users, requests),
    requests,
    promptTokens: Math.max(1, Math.round(number("total_input_tokens") / requests)),
    outputTokens: Math.max(2, Math.round(number("total_output_tokens") / requests)),
    ttftMicros: number("mean_ttft_ms") * MICROS_PER_MILLI,
    tpotMicros: number("mean_tpot_ms") * MICROS_PER_MILLI,
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return point;
}
