/**
 * The times that a decision expects of its request, beside what they were: our forecast, a moving average of each
 * endpoint, and gradient boosting on the features of llm-d's latency predictor, fitted on the first part of each run. All
 * are judged on the rest of it, request by request.
 *
 *     npx node bench/forecast.ts [--source recorded,virtual,live] [--trace FOLDER,...] [--again] [--fit 0.5] [--seed 1]
 *         [--case mooncake-moderate,...] [--requests 1500] [--fleet even|mixed] [--time-scale 0.5] [--out FOLDER]
 *         [--engine-command COMMAND] [--engines 2] [--rate-scale 1] [--engine-file NAME]
 *
 * recorded: runs of real vLLM under BENCH_SHARED (default ../shared), on GPUs and on a CPU, as a gateway in front of
 * them would have seen them; once with nothing known of the engine, once with the step times of its engine file. virtual:
 * simulated H100 engines under profile gnomon-predicted, on the traces of BENCH_TRACES (default ../shared/traces). live:
 * eight emulated ones over sockets; --time-scale 0.5 makes them and the requests half as fast, --out keeps the trace.
 * engines: real ones, started for it, under the default: COMMAND is called with a port for each and becomes an engine there, such as a script
 * around `vllm serve`; part of Mooncake's conversations in small. --engine-file adds what is expected where the step times
 * of that file are known from the start.
 * --trace: what `gnomon serve --record` wrote under a profile that predicts, before whatever engines; with --again what
 * gnomon-predicted of this version expects where each request was sent, under whatever profile that was.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { namedStepTimes } from "#config/named-step-times.ts";
import { decided } from "./forecast/decided.ts";
import { type Judged, judge } from "./forecast/errors.ts";
import { engineRun } from "./forecast/engine-samples.ts";
import { liveCasesNamed, liveSamples } from "./forecast/live-samples.ts";
import { readRecordedInputs } from "./forecast/recorded-inputs.ts";
import { traceSamples } from "./forecast/trace-samples.ts";
import { casesNamed, virtualSamples } from "./forecast/virtual-samples.ts";

const { values: flags } = parseArgs({
  options: {
    source: { type: "string", default: "recorded,virtual" },
    trace: { type: "string", default: "" },
    again: { type: "boolean", default: false },
    case: { type: "string", default: "mooncake-moderate,mooncake-high,weka-moderate,weka-high,azure-high" },
    fit: { type: "string", default: "0.5" },
    requests: { type: "string", default: "1500" },
    fleet: { type: "string", default: "even" },
    "time-scale": { type: "string", default: "0.5" },
    seed: { type: "string", default: "1" },
    "engine-command": { type: "string" },
    engines: { type: "string", default: "2" },
    "rate-scale": { type: "string", default: "1" },
    "engine-file": { type: "string" },
    out: { type: "string" },
  },
});
/** Recorded runs, and the engine files of what they ran on. */
const RECORDED = [
  ["vllm-runs/RTX4090_Llama-3.1-8B", "rtx4090-llama-3.1-8b"],
  ["vllm-runs/RTXPRO6000_Qwen3-32B", "rtxpro6000x2-qwen3-32b"],
  ["vllm-cpu/light", "vllm-cpu-tiny"],
  ["vllm-cpu/heavy", "vllm-cpu-tiny"],
] as const;
const shared = join(process.env["BENCH_SHARED"] ?? "../shared", "traces");
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const [seed, fit, requests] = [Number(flags.seed), Number(flags.fit), Number(flags.requests)];
const cases = flags.case.split(",");
const wanted = new Set(flags.trace === "" ? flags.source.split(",") : []);

for (const path of flags.trace.split(",").filter((name) => name !== "")) {
  await ofTrace(path, path, flags.again);
}
if (wanted.has("recorded")) recorded();
if (wanted.has("virtual")) {
  const fleet = flags.fleet === "mixed" ? "mixed" : "even";
  for (const one of casesNamed(cases)) {
    const samples = await virtualSamples(one, { traces, requests, fleet, seed });
    print(`virtual, ${one.workload}, ${one.load} load, ${fleet}`, judge(samples, fit, seed));
  }
}
if (wanted.has("live")) await live();
if (wanted.has("engines")) await engines();

function recorded(): void {
  for (const [name, engineFile] of RECORDED) {
    const folder = join(shared, name);
    if (!existsSync(folder)) {
      process.stderr.write(`forecast: no ${folder}; set BENCH_SHARED\n`);
      continue;
    }
    const inputs = readRecordedInputs(folder);
    const known = judge(decided(inputs, namedStepTimes(engineFile)), fit, seed).filter(
      ({ predictor }) => predictor === "gnomon",
    );
    print(`vLLM, recorded: ${basename(name)}`, [
      ...judge(decided(inputs, undefined), fit, seed),
      ...known.map((one) => ({ ...one, predictor: `gnomon, step times of ${engineFile}` })),
    ]);
  }
}

async function ofTrace(what: string, path: string, isAgain: boolean): Promise<void> {
  const file = flags["engine-file"];
  const known =
    file === undefined
      ? []
      : judge(await traceSamples(path, { stepTimes: namedStepTimes(file) }), fit, seed)
          .filter(({ predictor }) => predictor === "gnomon")
          .map((one) => ({ ...one, predictor: `gnomon, step times of ${basename(file)}` }));
  print(what, [...judge(await traceSamples(path, isAgain ? {} : undefined), fit, seed), ...known]);
}

async function engines(): Promise<void> {
  const command = flags["engine-command"];
  if (command === undefined) throw new RangeError("--source engines: expected --engine-command with it, got none");
  await inFolder(async (folder) => {
    const path = await engineRun({
      command,
      engines: Number(flags.engines),
      mooncake: join(traces, "mooncake/conversation_trace.jsonl"),
      requests,
      rateScale: Number(flags["rate-scale"]),
      seed,
      folder,
    });
    await ofTrace(`${flags.engines} engines of ${basename(command)}`, path, false);
  });
}

async function live(): Promise<void> {
  await inFolder(async (out) => {
    for (const one of liveCasesNamed(cases)) {
      const folder = join(out, `${one.workload}-${one.load}`);
      mkdirSync(folder, { recursive: true });
      const timeScale = Number(flags["time-scale"]);
      const { samples, troubles } = await liveSamples(one, { traces, requests, timeScale, seed, folder });
      const noted = troubles.length === 0 ? "" : ` (machine busy: ${troubles.join(", ")})`;
      print(`live, ${one.workload}, ${one.load} load${noted}`, judge(samples, fit, seed));
    }
  });
}

/** In --out, which is kept, or in a folder that is not. */
async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = flags.out ?? mkdtempSync(join(tmpdir(), "gnomon-forecast-"));
  try {
    await work(folder);
  } finally {
    if (flags.out === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

function print(what: string, judged: readonly Judged[]): void {
  console.log(`\n### ${what}\n\n| | | MAPE % | median % | bias % | requests |\n|---|---|---|---|---|---|`);
  const rows = judged.toSorted((a, b) => b.figure.localeCompare(a.figure));
  for (const { figure, predictor, errors } of rows) {
    const { mape, median, bias } = errors;
    const shares = [mape, median, bias].map((share) => (100 * share).toFixed(1));
    console.log(`| ${figure.toUpperCase()} | ${predictor} | ${shares.join(" | ")} | ${errors.requests} |`);
  }
}
