/**
 * The engine model against recorded runs of the real vLLM. Prints what missed its bound, and fails then.
 *
 *     npx node bench/engine-vs-vllm.ts [FOLDER ...]
 *
 * A folder with iterations.csv is a run with every step of the engine (traces/vllm-cpu), one with kernels and
 * workload.jsonl a run with measured kernels (traces/vllm-runs). The engines' settings are read from meta.json. Of runs
 * with steps each drives the scheduler alone, and the first one's fit predicts the others. Without folders: all runs of
 * both kinds under BENCH_SHARED (default ../shared).
 */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { type CpuRun, readCpuRun } from "./engine-vs-vllm/cpu-run.ts";
import { testFit, testScheduler } from "./engine-vs-vllm/cpu-tests.ts";
import { readGpuRun } from "./engine-vs-vllm/gpu-run.ts";
import { readGpuSetup } from "./engine-vs-vllm/gpu-setup.ts";
import { testCoefficients, testKernels } from "./engine-vs-vllm/gpu-tests.ts";

const GIVEN = ["vllm-cpu/light", "vllm-cpu/heavy", "vllm-runs/RTX4090_Llama-3.1-8B", "vllm-runs/RTXPRO6000_Qwen3-32B"];

function main(args: readonly string[]): void {
  const traces = join(process.env["BENCH_SHARED"] ?? "../shared", "traces");
  const folders = args.length > 0 ? args : GIVEN.map((name) => join(traces, name)).filter((path) => existsSync(path));
  if (folders.length === 0) console.log(`no runs at ${traces}: set BENCH_SHARED, or name folders`);
  const withSteps: [string, CpuRun][] = [];
  const withKernels: string[] = [];
  for (const folder of folders) {
    if (existsSync(join(folder, "iterations.csv"))) withSteps.push([basename(folder), readCpuRun(folder)]);
    else if (existsSync(join(folder, "workload.jsonl"))) withKernels.push(folder);
    else throw new Error(`${folder}: expected iterations.csv, or kernels and workload.jsonl`);
  }
  for (const [name, run] of withSteps) testScheduler(name, run);
  const [first, ...others] = withSteps;
  if (first !== undefined) testFit(...first, others);
  for (const folder of withKernels) {
    const run = readGpuRun(folder);
    const setup = readGpuSetup(folder);
    testKernels(basename(folder), run, setup);
    testCoefficients(basename(folder), run, setup);
  }
}

try {
  main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`engine-vs-vllm: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
