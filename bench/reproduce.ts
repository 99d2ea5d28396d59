/**
 * Other routers before emulated engines, each observed by `gnomon tap`: how much of what they decided one policy explains,
 * out of sample; and what changing over to gnomon was predicted to bring beside what it brought.
 *
 *     npx node bench/reproduce.ts [--peers FOLDER] [--epp PROGRAM] [--envoy PROGRAM] [--routers sglang-router,vllm-router,smg,llm-d] [--policies TEXT] [--requests 400]
 *         [--rate 10] [--seed 1] [--keep FOLDER]
 *     npx node bench/reproduce.ts --switch [--seeds 1,2,3] [--routers sglang-router] [--policies round_robin]
 *
 * FOLDER: a virtual environment with sglang-router, vllm-router and smg; PROGRAM: llm-d's picker, and Envoy. What is not
 * there is left out. Chats over four engines in bursts, so that fleets are idle, balanced and not.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { finished } from "#core/base/finished.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { readDecidedRun } from "#shadow/reproduce/decided-run.ts";
import { type Explaining, reproduce, type Reproduction } from "#shadow/reproduce/reproduce.ts";
import { likelyFirst } from "#cli/reproduce/likely-profiles.ts";
import { changesOf } from "#cli/reproduce/reproduction-text.ts";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";
import { TraceReader } from "#trace/reader.ts";
import { Program } from "./closed-loop/program.ts";
import { observedRun, type RunOptions } from "./reproduce/observed-run.ts";
import { isThere, type Programs, ROUTER_CASES, type RouterCase } from "./reproduce/routers.ts";

const { values: flags } = parseArgs({
  options: {
    routers: { type: "string", default: "sglang-router,vllm-router,smg,llm-d" },
    policies: { type: "string" },
    requests: { type: "string", default: "400" },
    rate: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    seeds: { type: "string", default: "1,2,3" },
    switch: { type: "boolean", default: false },
    keep: { type: "string" },
    peers: { type: "string", default: process.env["BENCH_PEERS"] ?? "" },
    epp: { type: "string", default: process.env["BENCH_EPP"] ?? "" },
    envoy: { type: "string", default: process.env["BENCH_ENVOY"] ?? "" },
  },
});
const programs: Programs = { peers: flags.peers, picker: flags.epp, envoy: flags.envoy };
const ENGINE = "emulated-default";
const routers = flags.routers.split(",");
const cases = ROUTER_CASES.filter(
  ({ router, policy }) =>
    routers.includes(router) && (flags.policies === undefined || flags.policies.split(";").includes(policy)),
);
const folder = flags.keep ?? mkdtempSync(join(tmpdir(), "gnomon-reproduce-"));
const profiles = profileNames().map(loadProfile);

try {
  if (flags.switch) await switches();
  else await reproductions();
} finally {
  if (flags.keep === undefined) rmSync(folder, { recursive: true, force: true });
}
process.exit();

async function reproductions(): Promise<void> {
  const head = [
    "router",
    "policy",
    "explained by",
    "held out",
    "share, %",
    "own, %",
    "possible, %",
    "blind, %",
    "what differs",
    "tried",
  ];
  console.log(line(head));
  console.log(line(head.map(() => "---")));
  for (const one of cases) {
    if (!isThere(one, programs)) {
      console.error(`${one.router}: not there, left out`);
      continue;
    }
    try {
      const trace = await observedRun(one, optionsFor(one, Number(flags.seed)));
      console.log(rowOf(one, await reproduced(trace)));
    } catch (error) {
      console.error(`${one.router}, ${one.policy}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

async function reproduced(trace: string): Promise<Reproduction> {
  const run = await readDecidedRun(new TraceReader(trace).items(), Infinity);
  const tried = likelyFirst(profiles, run.header.observed?.router);
  const steps = reproduce({ run, profiles: tried, candidatesMax: 1_500 });
  return finished(steps);
}

function rowOf(
  { router, policy, isDeterministic }: RouterCase,
  { best, differences, candidates }: Reproduction,
): string {
  const { heldOut } = best;
  const goal = isDeterministic ? (heldOut.share >= 0.95 * heldOut.own ? "" : " (goal 95)") : "";
  const differs =
    differences.decisions === 0 || !isDeterministic ? "" : (differences.speaks ?? "nothing that the trace has");
  return line([
    router,
    policy,
    nameOf(best),
    heldOut.decisions,
    `${percent(heldOut.share)}${goal}`,
    percent(heldOut.own),
    percent(heldOut.possible),
    percent(heldOut.blind),
    differs,
    candidates,
  ]);
}

function nameOf(one: Explaining): string {
  return [
    one.base,
    ...changesOf(
      one,
      profiles.find(({ name }) => name === one.base),
    ),
  ].join(", ");
}

/** Predicted from what was observed under the other router, beside what gnomon then brought. */
async function switches(): Promise<void> {
  const head = ["router", "policy", "seed", "measured, ms", "predicted, ms", "90 %", "measured then, ms", "inside"];
  console.log(line(head));
  console.log(line(head.map(() => "---")));
  for (const one of cases.filter((given) => isThere(given, programs))) {
    for (const seed of flags.seeds.split(",").map(Number)) {
      const options = optionsFor(one, seed);
      const trace = await observedRun(one, options);
      const before = await answerOf(trace, options.folder);
      const after = await answerOf(
        await observedRun(undefined, { ...options, folder: subfolder(`after-${seed}`) }),
        options.folder,
      );
      console.log(line([one.router, one.policy, seed, ...cells(before, after)]));
    }
  }
}

function cells(before: WhatIfAnswer, after: WhatIfAnswer): string[] {
  const mean = before.measured?.e2eMicros?.mean ?? NaN;
  const to = before.candidates.find(({ name }) => name === "gnomon")!;
  const [difference, interval] = [to.difference.e2eMicros?.mean ?? NaN, to.differenceInterval.e2eMicros];
  const [low, high] = [mean + (interval?.low ?? NaN), mean + (interval?.high ?? NaN)];
  const then = after.measured?.e2eMicros?.mean ?? NaN;
  const millis = (micros: number): string => (micros / 1_000).toFixed(0);
  const inside = then >= low && then <= high ? "yes" : "no";
  return [millis(mean), millis(mean + difference), `${millis(low)} to ${millis(high)}`, millis(then), inside];
}

/** What-if on an engine that is fitted to the trace itself. */
async function answerOf(trace: string, folder: string): Promise<WhatIfAnswer> {
  const [engine, output] = [join(folder, "engine.yaml"), join(folder, "what-if.json")];
  await Program.run({ command: "calibrate", operands: [trace], flags: { output: engine } }, [0]);
  await Program.run(
    { command: "what-if", operands: [trace], flags: { engine, profile: "gnomon", output, replicas: 30 } },
    [0],
  );
  return JSON.parse(readFileSync(output, "utf8")) as WhatIfAnswer;
}

function optionsFor({ router, policy }: RouterCase, seed: number): RunOptions {
  const own = subfolder(`${router}-${policy}-${seed}`.replaceAll(/[^\w.-]+/g, "_"));
  const workload = join(own, "workload.yaml");
  writeFileSync(workload, workloadText());
  return { programs, engine: ENGINE, workload, requests: Number(flags.requests), folder: own, seed };
}

function subfolder(name: string): string {
  const own = join(folder, name);
  mkdirSync(own, { recursive: true });
  return own;
}

/** Conversations that begin alike in groups, in bursts, with prompts of their own between them. */
function workloadText(): string {
  const turns = 3;
  return `conversations: ${Number(flags.requests)}
arrivals: { process: gamma, ratePerSecond: ${Number(flags.rate) / turns}, cv: 3 }
groups:
  - name: chat
    weight: 3
    prefixes: 4
    prefixTokens: 400
    userTokens: { distribution: uniform, min: 40, max: 400 }
    outputTokens: { distribution: uniform, min: 20, max: 120 }
    turns: { distribution: uniform, min: 2, max: 6 }
    thinkSeconds: { distribution: exponential, mean: 2 }
  - name: single
    weight: 1
    userTokens: { distribution: uniform, min: 100, max: 2000 }
    outputTokens: { distribution: uniform, min: 20, max: 120 }
`;
}

function line(values: readonly (string | number)[]): string {
  return `| ${values.join(" | ")} |`;
}

function percent(share: number): string {
  return (100 * share).toFixed(1);
}
