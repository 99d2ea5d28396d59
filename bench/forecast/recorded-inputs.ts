import type { Load } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import { type CpuRun, readCpuRun } from "../engine-vs-vllm/cpu-run.ts";
import { hashesOf } from "../engine-vs-vllm/cpu-replay.ts";
import { readGpuRun } from "../engine-vs-vllm/gpu-run.ts";
import { hasFile, readNumberRows, type RunLine } from "../engine-vs-vllm/run-files.ts";

/** A recorded run of one engine, as a gateway in front of it would have seen it. */
export interface RecordedInputs {
  readonly engine: EngineConfig;
  readonly inputs: readonly Input[];
}

export const ENDPOINT = "engine";

/** One request of a run; microseconds since the run began. */
interface Seen {
  readonly sentAt: Micros;
  readonly firstAt: Micros;
  readonly lastAt: Micros;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number | undefined;
  readonly hashes: Int32Array;
}

/** Requests that their clients took back are left out. */
export function readRecordedInputs(folder: string): RecordedInputs {
  if (!hasFile(folder, "iterations.csv")) return gpuInputs(folder);
  const run = readCpuRun(folder);
  const loads = readNumberRows(folder, "metrics.csv").map((line) =>
    observed(line.number("scrape_end"), line, line.number("kv_usage")),
  );
  return { engine: run.engine, inputs: inOrder([...loads, ...cpuRequests(run)]) };
}

function cpuRequests(run: CpuRun): Input[] {
  const hashes = hashesOf(run);
  return run.requests.flatMap((request, number) => {
    const { send, firstAt, lastAt, promptTokens, outputTokens, cachedTokens, abortedAt } = request;
    if (abortedAt !== undefined) return [];
    const seen = { promptTokens, outputTokens, cachedTokens, hashes: hashes[number]! };
    return inputsOf(number, run.engine, {
      sentAt: micros(send),
      firstAt: micros(firstAt),
      lastAt: micros(lastAt),
      ...seen,
    });
  });
}

function gpuInputs(folder: string): RecordedInputs {
  const { engine, requests, hashes, offset } = readGpuRun(folder);
  const start = Math.min(...requests.map(({ arrival_time }) => arrival_time));
  const onClock = (seconds: number): Micros => micros(seconds - offset - start);
  const lines = readNumberRows(folder, "timeseries.csv");
  // One of the runs has 0 in every row: it was not recorded.
  const hasUsage = lines.some((line) => line.number("kv_cache_pct") > 0);
  const loads = lines.map((line) =>
    observed(line.number("t"), line, hasUsage ? line.number("kv_cache_pct") / 100 : undefined),
  );
  const all = requests.flatMap((request, number) =>
    inputsOf(number, engine, {
      sentAt: micros(request.arrival_time - start),
      firstAt: onClock(request.first_token_ts),
      lastAt: onClock(request.last_token_ts),
      promptTokens: request.input_toks,
      outputTokens: request.output_toks,
      cachedTokens: undefined,
      hashes: hashes[number]!,
    }),
  );
  return { engine, inputs: inOrder([...loads, ...all]) };
}

const micros = (seconds: number): Micros => Math.round(seconds * 1e6);

function observed(seconds: number, line: RunLine, kvUtilization: number | undefined): Input {
  const load: Load = {
    running: line.number("running"),
    waiting: line.number("waiting"),
    kvUtilization,
    prefixHitRatio: undefined,
    ttftMicros: undefined,
    tpotMicros: undefined,
    tokensPerSecond: undefined,
    adaptersRunning: undefined,
    adaptersWaiting: undefined,
    adaptersMax: undefined,
    watts: undefined,
    smUtilization: undefined,
  };
  return { kind: "load-observed", at: micros(seconds), endpoint: ENDPOINT, load };
}

function inputsOf(number: number, { blockTokens }: EngineConfig, seen: Seen): Input[] {
  const { sentAt, firstAt, lastAt, promptTokens, outputTokens, cachedTokens, hashes } = seen;
  const id = String(number);
  const length = Math.floor(promptTokens / blockTokens);
  const request: RouteRequest = {
    id,
    model: "model",
    tenant: "",
    session: "",
    sloClass: "",
    priority: 0,
    promptTokens,
    promptTokensExact: true,
    outputTokensMax: undefined,
    sequences: 1,
    blocks: { hashes: hashes.slice(0, 2 * length), length, blockTokens },
    profile: "",
  };
  const counts = { promptTokens, cachedTokens, outputTokens };
  return [
    { kind: "request-arrived", at: sentAt, request },
    { kind: "first-token", at: firstAt, requestId: id },
    { kind: "request-finished", at: lastAt, requestId: id, outcome: "ok", ...counts },
  ];
}

/** Of one time, in the order in which they are given. */
function inOrder(inputs: readonly Input[]): Input[] {
  return inputs.toSorted((a, b) => a.at - b.at);
}
