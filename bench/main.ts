/**
 * Benches by name, each a process of its own, one after another.
 *
 *     npm run bench                  what the budgets are about, with short settings
 *     npm run bench -- NAME...       these
 *     npm run bench -- NAME SETTINGS this, with settings of its own
 *     npm run bench -- --list        all, with a line each
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

interface Bench {
  readonly about: string;
  /** Arguments that make it short, given when it is one of all. */
  readonly short?: readonly string[];
  /** Left out unless it is named: takes long, or needs data that is not in the repository. */
  readonly onDemand?: true;
}

const BENCHES: Readonly<Record<string, Bench>> = {
  gateway: {
    about: "CPU per request and per streamed event, beside a bare proxy and nginx",
    short: ["--rounds", "3", "--millis", "700"],
  },
  stages: {
    about: "where the time of a request and of an event goes: stages, bytes allocated, calls of read and write",
    onDemand: true,
  },
  events: { about: "CPU of a streamed event that is one read and one write", short: ["--rounds", "5"] },
  "event-reading": { about: "what our own code takes of a streamed event, in time and allocations" },
  exponents: { about: "how cost grows with body, turns, endpoints, requests in flight, tenants and index" },
  streams: {
    about: "2,000 and 10,000 streams: CPU per event, bytes per stream, the gap that is added",
    onDemand: true,
  },
  mixed: { about: "mixed load for minutes or an hour: heap, handles, latency minute by minute", onDemand: true },
  spans: { about: "CPU of a request without spans, with them for some and for all", onDemand: true },
  start: { about: "time, CPU and memory of a start, with estimated and with exact tokens", short: ["--rounds", "1"] },
  hostile: {
    about: "requests made to be dear: CPU by size, and what others wait meanwhile",
    short: ["--rounds", "1"],
  },
  parsers: {
    about:
      "bytes of engines, publishers, other gateways, clusters and files that are made to be dear: CPU by size, stretches",
    onDemand: true,
  },
  fuzz: {
    about: "clients, engines, publishers and other gateways that mean harm, beside well ones (--minutes, --seed)",
    onDemand: true,
  },
  decision: { about: "time of one decision, by endpoints and prompt length" },
  "block-hash": { about: "time to hash a block" },
  "prefix-index": { about: "time of a match and an insert, bytes per block held" },
  tokenizer: { about: "time from prompt to tokens and blocks, by its size" },
  answers: { about: "time to find out the tokens of answers: by event that passes, and afterwards" },
  disaggregation: { about: "prompts computed elsewhere, live beside colocated and predicted", onDemand: true },
  "kv-faults": { about: "what is left of stale beliefs where real engines' KV events go wrong", onDemand: true },
  "shared-prompts": { about: "prompts computed at one real engine and answered at another one", onDemand: true },
  continuation: {
    about: "streams whose engines are killed: whole, with the same text, and how long they pause",
    short: ["--streams", "200", "--engines", "4", "--tokens", "40", "--step-millis", "250"],
  },
  "llm-d-shares": {
    about: "which endpoints a running llm-d picks, beside gnomon's profile of the same scorers (needs both binaries)",
    onDemand: true,
  },
  engine: { about: "what the engine model costs per request", short: ["20000", "4"] },
  simulate: { about: "the whole simulator: up to a million requests, peak memory", onDemand: true },
  "simulate-command": { about: "the same prompts from the command line: CPU of all threads, memory", onDemand: true },
  queueing: { about: "the simulator's mean wait against theory", onDemand: true },
  profiles: { about: "every routing profile on recorded workloads, simulated (needs BENCH_TRACES)", onDemand: true },
  "default-choice": {
    about: "candidates for the default by a rule, on choosing halves of many cases, then held out (needs BENCH_TRACES)",
    onDemand: true,
  },
  "default-live": {
    about: "the default and its rivals on held-out cases over sockets, beside the simulator (needs BENCH_TRACES)",
    onDemand: true,
  },
  forecast: {
    about: "predicted against real TTFT and TPOT per decision, beside a moving average and boosted trees",
    onDemand: true,
  },
  "closed-loop": {
    about: "live runs and what-if's prediction of them (needs BENCH_TRACES); minutes a profile",
    onDemand: true,
  },
  rollout: {
    about: "rollouts of one profile against another: false alarms, time to find, bias of each design; minutes",
    onDemand: true,
  },
  contrasts: {
    about: "B3's policies against one another, the capped one among them (needs BENCH_TRACES)",
    onDemand: true,
  },
  tenants: { about: "VTC and its variants where one tenant asks for most, simulated", onDemand: true },
  cascade: {
    about: "a cascade of two models, live: the share that goes on, and latency",
    short: ["--streams", "64", "--tokens", "32"],
  },
  "perf-gate": { about: "CPU time of this commit beside its parent's, paired; ends with 1 above 20 %", onDemand: true },
  studies: { about: "what the weight of affinity, eviction and old gauges do to a fleet, simulated", onDemand: true },
  "engine-vs-vllm": { about: "the engine model against recorded vLLM runs (needs BENCH_SHARED)", onDemand: true },
  "shadow-cost": { about: "the gateway with its shadow at work and without, paired; takes 10 minutes", onDemand: true },
  coverage: {
    about: "how often prediction intervals hold what happens, on drawn engines and recorded runs",
    onDemand: true,
  },
  "tune-traps": {
    about: "whether a bad policy gets past tune: short traffic, wrong engines (--attempts)",
    onDemand: true,
  },
  "tune-live": {
    about:
      "what tune predicts of the half of a trace that it did not search, beside a live rollout (needs BENCH_TRACES)",
    onDemand: true,
  },
  "tune-no-gain": {
    about: "what tune answers where nothing is to be gained (needs BENCH_TRACES)",
    onDemand: true,
  },
  autopilot: {
    about: "the autopilot's whole loop live: too little traffic, a proposal, a yes, a rollout, its end",
    onDemand: true,
  },
  "llm-d-export": {
    about: "whether llm-d-router's endpoint picker takes what is exported (--binary)",
    onDemand: true,
  },
  mutants: {
    about: "small changes of core, engine and live, and whether a test fails (--folder, --sample)",
    onDemand: true,
  },
  "policy-changes": {
    about: "policies that change under load, by file and admin API: failed requests, versions, parity",
    onDemand: true,
  },
  "status-page": {
    about: "the gateway with its status page open in a browser and closed; takes 3 minutes",
    onDemand: true,
  },
  calibrate: { about: "fitted engines against recorded vLLM runs (needs BENCH_SHARED)", onDemand: true },
};

async function main(names: readonly string[], settings: readonly string[], listing: boolean): Promise<number> {
  if (listing) {
    for (const [name, { about, onDemand }] of Object.entries(BENCHES)) {
      process.stdout.write(`${name.padEnd(16)} ${about}${onDemand === true ? " (only by name)" : ""}\n`);
    }
    return 0;
  }
  const unknown = names.filter((name) => !Object.hasOwn(BENCHES, name));
  if (unknown.length > 0) {
    process.stderr.write(`bench: no ${unknown.join(", ")}; expected some of ${Object.keys(BENCHES).join(", ")}\n`);
    return 2;
  }
  if (settings.length > 0 && names.length !== 1) {
    process.stderr.write(`bench: ${settings.join(" ")}: expected settings behind one name\n`);
    return 2;
  }
  const failed: string[] = [];
  const all = Object.keys(BENCHES).filter((name) => BENCHES[name]!.onDemand !== true);
  for (const name of names.length > 0 ? names : all) {
    process.stdout.write(`\n# ${name}: ${BENCHES[name]!.about}\n`);
    const code = await run(name, names.length > 0 ? settings : (BENCHES[name]!.short ?? []));
    if (code !== 0) failed.push(name);
  }
  if (failed.length > 0) process.stderr.write(`bench: failed: ${failed.join(", ")}\n`);
  return failed.length > 0 ? 1 : 0;
}

/** Resolves with the exit code, 1 where a signal ended it. */
async function run(name: string, args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [join(import.meta.dirname, `${name}.ts`), ...args], { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 1;
}

const argv = process.argv.slice(2);
const listing = argv.includes("--list");
const names = argv.slice(0, argv.findIndex((one) => one.startsWith("-")) >>> 0);
const settings = listing ? [] : argv.slice(names.length);
process.exitCode = await main(names, settings, listing);
