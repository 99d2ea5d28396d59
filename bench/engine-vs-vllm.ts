/**
 * The engine model against recorded runs of the real vLLM. Says what missed its bound, and fails then.
 *
 *     GNOMON_SHARED=folder npx node bench/engine-vs-vllm.ts
 *
 * The folder (default ../shared) holds traces/vllm-cpu/{light,heavy} and traces/vllm-runs/*.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readCpuRun } from "./engine-vs-vllm/cpu-run.ts";
import { testFit, testScheduler } from "./engine-vs-vllm/cpu-tests.ts";
import { readGpuRun } from "./engine-vs-vllm/gpu-run.ts";
import { testCoefficients, testKernels } from "./engine-vs-vllm/gpu-tests.ts";

const traces = join(process.env["GNOMON_SHARED"] ?? "../shared", "traces");
const cpuFolder = join(traces, "vllm-cpu");
const gpuFolder = join(traces, "vllm-runs");

if (existsSync(cpuFolder)) {
  const light = readCpuRun(join(cpuFolder, "light"));
  const heavy = readCpuRun(join(cpuFolder, "heavy"));
  testScheduler("light", light);
  testScheduler("heavy", heavy);
  testFit(light, [
    ["light, the run fitted", light],
    ["heavy, predicted", heavy],
  ]);
} else console.log(`no runs at ${cpuFolder}: set GNOMON_SHARED to the folder that holds traces/vllm-cpu`);

if (existsSync(gpuFolder)) {
  for (const name of ["RTX4090_Llama-3.1-8B", "RTXPRO6000_Qwen3-32B"]) {
    const run = readGpuRun(join(gpuFolder, name));
    testKernels(name, run);
    testCoefficients(name, run);
  }
} else console.log(`no runs at ${gpuFolder}: set GNOMON_SHARED to the folder that holds traces/vllm-runs`);
