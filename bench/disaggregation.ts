/**
 * Prompts computed at some engines and answered at others (P/D), against all engines doing both: the same requests live,
 * over sockets, before the same emulated engines, once under each profile; and what `what-if` predicts of both from the
 * colocated run's trace alone.
 *
 *     BENCH_TRACES=FOLDER npx node bench/disaggregation.ts [--load moderate|high] [--requests 1200] [--prefill 5]
 *         [--engines 8] [--colocated gnomon] [--shared gnomon-pd] [--out FOLDER] [--reuse] [--time-scale 1]
 *         [--replicas 20]
 *
 * FOLDER holds mooncake/conversation_trace.jsonl. A load takes about two and a half minutes. The first `--prefill`
 * engines have the role prefill, the others decode; the colocated profile pays no attention to it. Blocks go between
 * emulated engines at 25 GB/s. A prediction is the middle of its replicas, as in what-if: near saturation one
 * simulation is one draw of many, and so is a live run. Prints Markdown: what clients measured, whether the machine
 * kept up, and measured at the gateway → predicted.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { loadEngine } from "#config/engine-file.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { ROLES_DEFAULT } from "#core/profile/profile-stages.ts";
import { figuresInResults, figuresOfRun } from "#shadow/question/compare-results.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { TraceReader } from "#trace/reader.ts";
import { CASES, type ClosedLoopCase } from "./closed-loop/case.ts";
import { type LiveRun, liveRun, troubles } from "./closed-loop/live-run.ts";
import { predict } from "./closed-loop/prediction.ts";
import { prepareWorkload } from "./closed-loop/prepared-workload.ts";
import { liveTable } from "./closed-loop/tables.ts";
import { writeWarmUp } from "./closed-loop/warm-up.ts";

const { values: flags } = parseArgs({
  options: {
    load: { type: "string", default: "moderate" },
    requests: { type: "string", default: "1200" },
    engines: { type: "string", default: "8" },
    prefill: { type: "string", default: "5" },
    colocated: { type: "string", default: "gnomon" },
    shared: { type: "string", default: "gnomon-pd" },
    "time-scale": { type: "string", default: "1" },
    replicas: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    port: { type: "string", default: "19600" },
    out: { type: "string" },
    reuse: { type: "boolean", default: false },
  },
});
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const chosen = CASES.find(({ workload, load }) => workload === "mooncake" && load === flags.load);
if (chosen === undefined || !existsSync(join(traces, chosen.path))) {
  console.error(`bench: no load ${flags.load}, or no mooncake/conversation_trace.jsonl in ${traces} (BENCH_TRACES)`);
  process.exit(2);
}
const [engines, prefill, port] = [Number(flags.engines), Number(flags.prefill), Number(flags.port)];
const one: ClosedLoopCase = { ...chosen, engines, requests: Number(flags.requests) };
const [timeScale, seed] = [Number(flags["time-scale"]), Number(flags.seed)];
const SHOWN = [
  ["ttftMean", "TTFT"],
  ["tpotMean", "TPOT"],
  ["e2eMean", "E2E"],
] as const;

const folder = flags.out ?? mkdtempSync(join(tmpdir(), "gnomon-disaggregation-"));
try {
  await bench();
} finally {
  if (flags.out === undefined) rmSync(folder, { recursive: true, force: true });
}

async function bench(): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const workload = join(folder, "workload.jsonl");
  const warmUp = join(folder, "warm-up.jsonl");
  const requests = await prepareWorkload(one, join(traces, one.path), workload, seed);
  writeWarmUp(warmUp, timeScale);
  const config = join(folder, "gateway.yaml");
  writeFileSync(config, stringify({ endpoints: Array.from({ length: engines }, (_, i) => endpointOf(i)) }));
  const runs: LiveRun[] = [];
  for (const profile of [flags.colocated, flags.shared]) {
    process.stderr.write(`${one.load} load: ${profile}\n`);
    const file = join(folder, `${profile}.run.json`);
    const run =
      flags.reuse && existsSync(file)
        ? (JSON.parse(readFileSync(file, "utf8")) as LiveRun)
        : await liveRun({
            one,
            profile,
            workload,
            warmUp,
            folder,
            port,
            timeScale,
            seed,
            prefill,
            config: { file: config, name: profile },
          });
    writeFileSync(file, JSON.stringify(run));
    runs.push(run);
  }
  console.log(
    `\n### ${one.load} load: ${requests} requests, ${engines} x ${one.engine}, ${prefill} of them for prompts\n`,
  );
  console.log(`Measured by the clients:\n\n${liveTable(runs)}\n`);
  for (const { profile, machine } of runs)
    console.log(`The machine under ${profile}: ${troubles(machine).join("; ") || "kept up"}.`);
  console.log(`\nMeasured at the gateway → predicted from the trace under ${flags.colocated}, means, ms:\n`);
  console.log(await gaps(runs));
}

function endpointOf(i: number): object {
  const role = i < prefill ? "prefill" : "decode";
  return { url: `http://127.0.0.1:${port + 1 + i}`, labels: { [ROLES_DEFAULT.label]: role } };
}

async function gaps(runs: readonly LiveRun[]): Promise<string> {
  const engine = loadEngine(one.engine);
  const { answer } = await predict({
    trace: runs[0]!.trace,
    engineFile: join(folder, "engine.yaml"),
    batchTokensMax: engine.batchTokensMax,
    modelTokensMax: engine.modelTokensMax,
    profiles: [flags.shared],
    replicas: Number(flags.replicas),
  });
  const predicted = figuresInResults(answer, "") ?? [];
  const lines = ["| profile | TTFT | TPOT | E2E |", "| --- | ---: | ---: | ---: |"];
  for (const { profile, trace } of runs) {
    const live = figuresOfRun(await readRecordedRun(new TraceReader(trace).items()), profile).figures;
    const simulated = predicted.find(({ policy }) => policy === profile)?.figures ?? {};
    const cells = SHOWN.map(([figure]) => gap(live[figure], simulated[figure]));
    lines.push(`| ${profile} | ${cells.join(" | ")} |`);
  }
  return lines.join("\n");
}

function gap(live: number | undefined, simulated: number | undefined): string {
  if (live === undefined || simulated === undefined) return "-";
  const [measured, predicted] = [live / MICROS_PER_MILLI, simulated / MICROS_PER_MILLI];
  const share = 100 * (predicted / measured - 1);
  return `${measured.toFixed(1)} → ${predicted.toFixed(1)} (${share >= 0 ? "+" : ""}${share.toFixed(1)} %)`;
}
