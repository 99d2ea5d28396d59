/**
 * Calibration against recorded runs of the real vLLM: fitted on one run or its first part, tested on another or on the
 * rest, from what a gateway sees and nothing else. Prints what missed its bound, and fails then.
 *
 *     BENCH_SHARED=folder npx node bench/calibrate.ts
 *
 * The folder (default ../shared) holds traces/vllm-cpu/{light,heavy} and traces/vllm-runs/*.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { type Calibration, calibrate } from "#shadow/calibrate/calibrate.ts";
import type { Evidence, Served } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import { type ModelError, modelErrorOf } from "#shadow/calibrate/model-error.ts";
import { hashesOf } from "./engine-vs-vllm/cpu-replay.ts";
import { type CpuRun, readCpuRun } from "./engine-vs-vllm/cpu-run.ts";
import { judge } from "./engine-vs-vllm/errors.ts";
import { type GpuRun, readGpuRun } from "./engine-vs-vllm/gpu-run.ts";

const traces = join(process.env["BENCH_SHARED"] ?? "../shared", "traces");
/** Bounds of the mean error of TTFT, TPOT and E2E. */
const BOUNDS = { ttftMicros: 0.15, tpotMicros: 0.05, e2eMicros: 0.1 } as const;
/** KV blocks of a run that did not record them: enough for its batch, which never preempted. */
const KV_BLOCKS_UNRECORDED = 25_000;

const cpu = join(traces, "vllm-cpu");
if (existsSync(cpu)) {
  const runs = ["light", "heavy"].map((name) => readCpuRun(join(cpu, name)));
  const [light, heavy] = runs.map(cpuEvidence);
  across("light", light!, "heavy", heavy!, runs[1]!.engine);
  across("heavy", heavy!, "light", light!, runs[0]!.engine);
} else console.log(`no runs at ${cpu}: set BENCH_SHARED to the folder that holds traces/vllm-cpu`);

const gpu = join(traces, "vllm-runs");
if (existsSync(gpu)) {
  for (const name of ["RTX4090_Llama-3.1-8B", "RTXPRO6000_Qwen3-32B"]) {
    const run = readGpuRun(join(gpu, name));
    const sizes = engineDefaults({
      kvBlocks: run.kvBlocks ?? KV_BLOCKS_UNRECORDED,
      sequencesMax: run.sequencesMax,
      batchTokensMax: run.batchTokensMax,
      modelTokensMax: 32_768,
      asyncScheduling: true,
    });
    attempt(`${name}, first half`, () => {
      const calibration = calibrate(gpuEvidence(run), { sizes, trainPart: 0.5 });
      printCalibration(calibration);
      errors(`${name}, second half`, calibration.heldOut);
    });
  }
} else console.log(`no runs at ${gpu}: set BENCH_SHARED to the folder that holds traces/vllm-runs`);

function across(name: string, fitted: Evidence, otherName: string, other: Evidence, sizes: EngineConfig): void {
  attempt(name, () => {
    const calibration = calibrate(fitted, { sizes });
    printCalibration(calibration);
    errors(`the rest of ${name}`, calibration.heldOut);
    errors(
      otherName,
      modelErrorOf(other, forcedReplay(other, calibration.engine), () => true),
    );
  });
}

function attempt(name: string, run: () => void): void {
  console.log(`\nfitted on ${name}`);
  try {
    run();
  } catch (error) {
    console.log(`MISS ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

function printCalibration({ parameters, errors: standard, evaluations }: Calibration): void {
  for (const [name, value] of Object.entries(parameters)) {
    const error = standard[name as keyof typeof standard];
    if (error !== undefined) console.log(`    ${name} ${value.toPrecision(5)} +- ${error.toPrecision(2)}`);
  }
  console.log(`    ${evaluations} replays`);
}

function errors(name: string, error: ModelError): void {
  for (const metric of ["ttftMicros", "tpotMicros", "e2eMicros"] as const) {
    const one = error[metric];
    if (one === undefined) continue;
    const rest = `MAPE ${(100 * one.mape).toFixed(1)} %, p99 ${(100 * one.p99Relative).toFixed(1)} %, r ${one.correlation.toFixed(3)}`;
    const bound = BOUNDS[metric];
    const within = Math.abs(one.meanRelative) <= bound;
    judge(`${name}: ${metric} mean, ${rest}`, one.meanRelative, within, `within ${100 * bound} %`);
  }
}

function cpuEvidence(run: CpuRun): Evidence {
  const hashes = hashesOf(run);
  const rows = run.requests.map((request, i): Served => {
    return {
      arrivalAt: Math.round(request.send * 1e6),
      endpoint: 0,
      promptTokens: request.promptTokens,
      outputTokens: request.outputTokens,
      cachedTokens: request.cachedTokens ?? NaN,
      ttftMicros: (request.firstAt - request.send) * 1e6,
      e2eMicros: (request.lastAt - request.send) * 1e6,
      ok: request.abortedAt === undefined,
      hashes: hashes[i]!,
    };
  });
  return { endpoints: ["one"], rows: rows.sort((a, b) => a.arrivalAt - b.arrivalAt), left: {} };
}

function gpuEvidence({ requests, hashes, offset }: GpuRun): Evidence {
  const began = Math.min(...requests.map((request) => request.arrival_time));
  const rows = requests.map((request, i): Served => {
    const start = request.arrival_time + offset;
    return {
      arrivalAt: Math.round((request.arrival_time - began) * 1e6),
      endpoint: 0,
      promptTokens: request.input_toks,
      outputTokens: request.output_toks,
      cachedTokens: 0,
      ttftMicros: (request.first_token_ts - start) * 1e6,
      e2eMicros: (request.last_token_ts - start) * 1e6,
      ok: true,
      hashes: hashes[i]!,
    };
  });
  return { endpoints: ["one"], rows: rows.sort((a, b) => a.arrivalAt - b.arrivalAt), left: {} };
}
