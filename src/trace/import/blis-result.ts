import { stat } from "node:fs/promises";
import type { Observation, TrafficRequest } from "../transform/traffic.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { readBlisTrace } from "./blis-trace.ts";
import { ImportError, ImportReport } from "./import-report.ts";
import { amountOf, isRecord, type JsonRecord, textField, tokenCount } from "./json-record.ts";
import { unreadable } from "./unreadable.ts";
import { unmarkedText } from "./unmarked-text.ts";

/** The list is parsed whole; a larger file is refused. */
const FILE_BYTES_MAX = 536_870_912;

interface Result {
  readonly id: string;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly sloClass: string;
  readonly model: string;
  readonly observed: Observation;
}

/**
 * BLIS's SimResults: a JSON list with `request_id`, `ttft_us`, `e2e_us`, `input_tokens`, `output_tokens`, `slo_class`,
 * `model`. They hold no arrivals: those come from `arrivals`, the TraceV2 that was replayed, by request id. Without one
 * all requests are at time 0, good for figures and no simulation.
 */
export async function* readBlisResult(
  path: string,
  arrivals: string | undefined,
  report: ImportReport,
): AsyncGenerator<TrafficRequest> {
  const results = await readResults(path, report);
  if (arrivals === undefined) {
    for (const result of results.values()) yield trafficOf(result, LENGTHS_ONLY, 0, report.accept());
    return;
  }
  const sent = new ImportReport(arrivals, "blis", false);
  for await (const { id, request } of readBlisTrace(arrivals, sent)) {
    const result = results.get(id);
    if (result === undefined) {
      report.adjust(`request of ${arrivals} without a result`);
      continue;
    }
    results.delete(id);
    yield trafficOf(result, request, request.arrivalMicros, report.accept());
  }
  for (const id of results.keys()) report.refuse(`${path}: ${id}`, "request_id that is not in the TraceV2");
  for (const [reason, count] of sent.refused)
    for (let i = 0; i < count; i++) report.adjust(`row of ${arrivals} left out: ${reason}`);
}

function trafficOf(
  { id, observed, promptTokens, outputTokens, sloClass, model }: Result,
  sent: Omit<WorkloadRequest, "index" | "arrivalMicros" | "promptTokens" | "outputTokens">,
  arrivalMicros: number,
  index: number,
): TrafficRequest {
  return { id, request: { ...sent, index, arrivalMicros, promptTokens, outputTokens, sloClass, model }, observed };
}

async function readResults(path: string, report: ImportReport): Promise<Map<string, Result>> {
  const list = await parseList(path);
  const results = new Map<string, Result>();
  for (const [i, entry] of list.entries()) {
    report.records++;
    const result = isRecord(entry) ? resultOf(entry) : "not a JSON object";
    if (typeof result === "string") report.refuse(`${path}[${i}]`, result);
    else if (results.has(result.id)) report.refuse(`${path}[${i}]`, "request_id that was given already");
    else results.set(result.id, result);
  }
  return results;
}

async function parseList(path: string): Promise<readonly unknown[]> {
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > FILE_BYTES_MAX) throw new ImportError(`${path}: expected at most ${FILE_BYTES_MAX} bytes, got ${size}`);
    text = await unmarkedText(path);
  } catch (error) {
    throw error instanceof ImportError ? error : new ImportError(`${path}: ${unreadable(error)}`);
  }
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return value as readonly unknown[];
  } catch {
    // Reported below, as for every other value that is no list.
  }
  throw new ImportError(`${path}: expected a JSON list of results, got something else or a torn one`);
}

function resultOf(record: JsonRecord): Result | string {
  const id = record["request_id"];
  if (typeof id !== "number" && typeof id !== "string") return "request_id is not a number or a text";
  const [ttftMicros, e2eMicros] = [amountOf(record, "ttft_us"), amountOf(record, "e2e_us")];
  if (ttftMicros === undefined || e2eMicros === undefined) return "ttft_us or e2e_us is not a time >= 0";
  if (e2eMicros < ttftMicros) return "e2e_us is less than ttft_us";
  const [promptTokens, outputTokens] = [tokenCount(record, "input_tokens"), tokenCount(record, "output_tokens")];
  if (promptTokens === undefined || promptTokens === 0) return "input_tokens is not a number of tokens >= 1";
  if (outputTokens === undefined || outputTokens === 0) return "output_tokens is not a number of tokens >= 1";
  return {
    id: String(id),
    promptTokens,
    outputTokens,
    sloClass: textField(record, "slo_class") ?? "",
    model: textField(record, "model") ?? "",
    observed: {
      endpoint: "",
      outcome: "ok",
      ttftMicros: Math.round(ttftMicros),
      e2eMicros: Math.round(e2eMicros),
      cachedTokens: NaN,
    },
  };
}
