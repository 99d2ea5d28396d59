/**
 * The times that a decision expects of its request, beside what they were: our forecast, a moving average of each
 * endpoint, and gradient boosting on the features of llm-d's latency predictor, fitted on the first part of each run. All
 * are judged on the rest of it, request by request.
 *
 *     npx node bench/forecast.ts [--source recorded,virtual,live] [--trace FOLDER,...] [--again] [--fit 0.5] [--seed 1]
 *         [--case mooncake-moderate,...] [--requests 1500] [--fleet even|mixed] [--time-scale 0.5] [--out FOLDER]
 *
 * recorded: runs of real vLLM under GNOMON_SHARED (default ../shared), on GPUs and on a CPU, as a gateway in front of
 * them would have seen them; once with nothing known of the engine, once with the step times of its engine file. virtual:
 * simulated H100 engines under profile gnomon-predicted, on the traces of GNOMON_TRACES (default ../shared/traces). live:
 * eight emulated ones over sockets; --time-scale 0.5 makes them and the requests half as fast, --out keeps the trace.
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
const shared = join(process.env["GNOMON_SHARED"] ?? "../shared", "traces");
const traces = process.env["GNOMON_TRACES"] ?? "../shared/traces";
const [seed, fit, requests] = [Number(flags.seed), Number(flags.fit), Number(flags.requests)];
const cases = flags.case.split(",");
const wanted = new Set(flags.trace === "" ? flags.source.split(",") : []);

for (const path of flags.trace.split(",").filter((name) => name !== "")) {
  print(path, judge(await traceSamples(path, flags.again), fit, seed));
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

function recorded(): void {
  for (const [name, engineFile] of RECORDED) {
    const folder = join(shared, name);
    if (!existsSync(folder)) {
      process.stderr.write(`forecast: no ${folder}; set GNOMON_SHARED\n`);
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

async function live(): Promise<void> {
  const out = flags.out ?? mkdtempSync(join(tmpdir(), "gnomon-forecast-"));
  try {
    for (const one of liveCasesNamed(cases)) {
      const folder = join(out, `${one.workload}-${one.load}`);
      mkdirSync(folder, { recursive: true });
      const timeScale = Number(flags["time-scale"]);
      const { samples, troubles } = await liveSamples(one, { traces, requests, timeScale, seed, folder });
      const noted = troubles.length === 0 ? "" : ` (machine busy: ${troubles.join(", ")})`;
      print(`live, ${one.workload}, ${one.load} load${noted}`, judge(samples, fit, seed));
    }
  } finally {
    if (flags.out === undefined) rmSync(out, { recursive: true, force: true });
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
