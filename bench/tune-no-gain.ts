/**
 * `gnomon tune` where nothing is to be gained: one engine, engines that are hardly loaded, prompts that share nothing, and
 * a policy in force that tune itself found. What it answers for each, on windows of the trace; where it calls a policy better
 * all the same, what that policy gains on the window after, which neither the search nor the judge saw.
 *
 *     BENCH_TRACES=<folder> npx node bench/tune-no-gain.ts [--cases "n;m"] [--windows 3] [--requests 1500] [--trials 30]
 *
 * The folder has mooncake/conversation_trace.jsonl, azure/AzureLLMInferenceTrace_code.csv and weka/*.json. Trials and not
 * time bound the search, so that it is the same on any machine. Ends with exit code 1 where something that was called
 * better is worse on the window after by more than a hundredth.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadEngine } from "#config/engine-file.ts";
import { loadProfile } from "#config/profile-file.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";
import { MICROS_PER_SECOND } from "#core/units.ts";
import { type Candidate, runCandidate, type Setting } from "#shadow/question/candidate.ts";
import { figuresOf } from "#shadow/question/figures.ts";
import type { TuneAnswer } from "#shadow/tune/tune.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { markdown } from "./closed-loop/tables.ts";
import { Program } from "./closed-loop/program.ts";

const ENGINE = "h100-llama-3.1-8b";
const MODEL_TOKENS_MAX = 400_000;
const WORSE = 0.01;

interface NoGainCase {
  readonly name: string;
  readonly path: string;
  readonly endpoints: number;
  /** Arrivals so many times as fast as recorded. */
  readonly rateScale: number;
  /** By name; "tuned": what tune finds on this very window with the second one in force. */
  readonly inForce: string | readonly ["tuned", string];
  /** Prompts have nothing in common. */
  readonly isLengthsOnly?: true;
}

const MOONCAKE = { path: "mooncake/conversation_trace.jsonl", endpoints: 8 } as const;
const AZURE = { path: "azure/AzureLLMInferenceTrace_code.csv", endpoints: 8, rateScale: 1 } as const;

const CASES: readonly NoGainCase[] = [
  { ...MOONCAKE, name: "one engine", endpoints: 1, rateScale: 0.3, inForce: "round-robin" },
  { ...AZURE, name: "Azure code as recorded, nothing shared", inForce: "gnomon" },
  { ...AZURE, name: "Azure code as recorded, nothing shared", inForce: "least-loaded" },
  { ...MOONCAKE, name: "Mooncake as recorded, nothing shared", rateScale: 1, inForce: "gnomon", isLengthsOnly: true },
  {
    ...MOONCAKE,
    name: "Mooncake at 4 times the rate, in force what tune found",
    rateScale: 4,
    inForce: ["tuned", "llm-d"],
  },
  { path: "weka", name: "agents, in force what tune found", endpoints: 8, rateScale: 1, inForce: ["tuned", "llm-d"] },
];

const { values: flags } = parseArgs({
  options: {
    cases: { type: "string" },
    windows: { type: "string", default: "3" },
    requests: { type: "string", default: "1500" },
    trials: { type: "string", default: "30" },
  },
});
const [windows, requestsMax] = [Number(flags.windows), Number(flags.requests)];
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const folder = mkdtempSync(join(tmpdir(), "gnomon-tune-no-gain-"));
const cases = CASES.filter(({ name }) => flags.cases === undefined || flags.cases.split(";").includes(name));
try {
  const rows: string[][] = [];
  for (const one of cases) {
    for (let window = 0; window < windows; window++) rows.push(await row(one, window));
  }
  console.log(
    markdown(
      [
        "traffic",
        "in force",
        "window",
        "policies, trials",
        "gain where searched",
        "on what was held out",
        "verdict",
        "true gain on the window after",
      ],
      rows,
    ),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function row(one: NoGainCase, window: number): Promise<string[]> {
  const requests = await windowOf(one, window);
  const file = join(folder, "window.jsonl");
  writeFileSync(file, workloadFileHeader(["a window of a trace"]) + requests.map(workloadLine).join(""));
  const inForce = typeof one.inForce === "string" ? one.inForce : await tunedFrom(one, file, one.inForce[1]);
  const { verdict, winner, heldOut, search } = await tuned(one, file, inForce);
  process.stderr.write(`${one.name}, window ${window}: ${verdict.kind}: ${verdict.reasons.join("; ")}\n`);
  let truth = "";
  if (verdict.kind === "better" && winner !== undefined) {
    const after = settingOf(one, await windowOf(one, window + 1));
    const spec = loadProfile(inForce).spec;
    const [before, then] = [{ name: "in force", spec }, winner.candidate].map((policy) => meanOf(after, policy)) as [
      number,
      number,
    ];
    truth = percent(1 - then / before);
    if (1 - then / before < -WORSE) process.exitCode = 1;
  }
  return [
    one.name,
    typeof one.inForce === "string" ? one.inForce : `tuned from ${one.inForce[1]}`,
    String(window),
    `${search?.policies ?? 0}, ${search?.trials.toFixed(0) ?? 0}`,
    winner === undefined ? "none better" : percent(winner.gain),
    heldOut === undefined
      ? ""
      : `${percent(heldOut.gain.value)} (${percent(heldOut.gain.low)} to ${percent(heldOut.gain.high)})`,
    verdict.kind,
    truth,
  ];
}

/** The file of the profile that tune calls better than another one; that one where it calls none. */
async function tunedFrom(one: NoGainCase, file: string, from: string): Promise<string> {
  const profile = join(folder, "tuned.yaml");
  rmSync(profile, { force: true });
  const { verdict } = await tuned(one, file, from, profile);
  return verdict.kind === "better" ? profile : from;
}

async function tuned(one: NoGainCase, file: string, inForce: string, profile?: string): Promise<TuneAnswer> {
  const json = join(folder, "answer.json");
  const bounds = { trials: flags.trials, budget: 600, "model-tokens-max": MODEL_TOKENS_MAX };
  const engines = { engine: ENGINE, endpoints: one.endpoints, "step-error": 0.05 };
  const written = profile === undefined ? {} : { "write-profile": profile };
  await Program.run({
    command: "tune",
    operands: [file],
    flags: { ...engines, ...bounds, ...written, "in-force": inForce, json },
  });
  return JSON.parse(readFileSync(json, "utf8")) as TuneAnswer;
}

/** Requests in order of their arrival, at the case's rate; of sessions, those that begin in the window. */
async function windowOf(one: NoGainCase, window: number): Promise<WorkloadRequest[]> {
  const isSessions = one.path === "weka";
  const options = { ...IMPORT_DEFAULTS, seed: 1 + (isSessions ? window : 0), sharedPrefix: 1 };
  const { requests } = await openWorkload(join(traces, one.path), options);
  const all: WorkloadRequest[] = [];
  for await (const request of requests) all.push(request);
  const cut = isSessions ? all : all.slice(window * requestsMax, (window + 1) * requestsMax);
  const first = Math.min(
    ...cut.map(({ thinkMicros, arrivalMicros }) => (thinkMicros === undefined ? arrivalMicros : Infinity)),
  );
  return cut.map((request, index) => ({
    ...request,
    ...(one.isLengthsOnly && LENGTHS_ONLY),
    index,
    arrivalMicros: Math.round(Math.max(0, request.arrivalMicros - first) / one.rateScale),
  }));
}

function settingOf(one: NoGainCase, workload: readonly WorkloadRequest[]): Setting {
  const engine = { ...loadEngine(ENGINE), modelTokensMax: MODEL_TOKENS_MAX };
  return {
    seed: 1,
    workload,
    endpoints: numberedIds("endpoint", one.endpoints).map((id) => ({
      id,
      models: [],
      labels: {},
      kvCapacityTokens: (engine.kvBlocks - 1) * engine.blockTokens,
      concurrencyMax: engine.sequencesMax,
    })),
    fleetEvents: [],
    engine,
    signals: scrapedEvery(MICROS_PER_SECOND),
    blockTokens: engine.blockTokens,
    staleAfterMicros: 3 * MICROS_PER_SECOND,
    requestMicros: 0,
    answerMicros: 0,
    rateScale: 1,
  };
}

function meanOf(setting: Setting, candidate: Candidate): number {
  return figuresOf(runCandidate(setting, candidate).e2eMicros)?.mean ?? NaN;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
