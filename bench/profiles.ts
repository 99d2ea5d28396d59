/**
 * Every routing profile on recorded workloads, over simulated engines in virtual time: what it does to cache hits,
 * latency and balance. Prints a Markdown table per workload and load.
 *
 *     GNOMON_TRACES=<folder> npx node bench/profiles.ts [--workload mooncake|weka] [--load moderate|high]
 *         [--profiles a,b,path.yaml] [--requests n] [--seed n] [--json]
 *
 * The folder holds mooncake/conversation_trace.jsonl and weka/*.json. Engines are H100 with Llama 3.1 8B; signals are
 * scraped every second and are late by 5 ms; prefixes are known from the router's own decisions. All of a column's
 * figures come from the same arrivals.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadEngine } from "#config/engine-file.ts";
import { type NamedProfile, loadProfile, profileNames } from "#config/profile-file.ts";
import { MICROS_PER_SECOND } from "#core/units.ts";
import type { EngineSpec } from "#sim/engine-fleet.ts";
import type { Outcomes } from "#sim/outcomes.ts";
import { type SimulationResult, simulate } from "#sim/simulate.ts";
import { NO_LATENCY } from "#sim/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

interface Case {
  readonly workload: "mooncake" | "weka";
  readonly load: "moderate" | "high";
  readonly path: string;
  readonly engines: number;
  /** First turns come so many times as fast as recorded. */
  readonly rateScale: number;
  /** Times that all sessions come, each time with text of their own but for the common system prompt. */
  readonly copies: number;
  /** Starts of sessions, where the workload has no clock for them. */
  readonly sessionsPerSecond: number;
}

const MOONCAKE = {
  workload: "mooncake",
  path: "mooncake/conversation_trace.jsonl",
  copies: 1,
  sessionsPerSecond: 1,
} as const;
const WEKA = { workload: "weka", path: "weka", rateScale: 1 } as const;

const CASES: readonly Case[] = [
  { ...MOONCAKE, load: "moderate", engines: 8, rateScale: 3 },
  { ...MOONCAKE, load: "high", engines: 8, rateScale: 4.5 },
  { ...WEKA, load: "moderate", engines: 8, copies: 4, sessionsPerSecond: 0.1 },
  { ...WEKA, load: "high", engines: 8, copies: 4, sessionsPerSecond: 0.25 },
];

/** Longer than the model's own, so that the longest conversations are served too. */
const MODEL_TOKENS_MAX = 400_000;

/** Ids below are of one session; from here on they stand for prompts that sessions have in common. */
const COMMON_FROM = 2 ** 52;
const COPY_STRIDE = 2 ** 40;

const { values: flags } = parseArgs({
  options: {
    workload: { type: "string" },
    load: { type: "string" },
    profiles: { type: "string" },
    requests: { type: "string", default: "4000" },
    seed: { type: "string", default: "42" },
    json: { type: "boolean", default: false },
  },
});
const config = { ...loadEngine("h100-llama-3.1-8b"), modelTokensMax: MODEL_TOKENS_MAX };
const traces = process.env["GNOMON_TRACES"] ?? "../shared/traces";
if (!existsSync(traces)) {
  console.error(`bench: no traces in ${traces}; set GNOMON_TRACES to a folder with mooncake/ and weka/`);
  process.exit(2);
}
const profiles = (flags.profiles?.split(",") ?? profileNames()).map(loadProfile);
for (const one of CASES) {
  if (flags.workload !== undefined && flags.workload !== one.workload) continue;
  if (flags.load !== undefined && flags.load !== one.load) continue;
  await report(one);
}

async function report(one: Case): Promise<void> {
  const requests = await read(one, Number(flags.requests));
  if (!flags.json) {
    console.log(`\n### ${one.workload}, ${one.load} load: ${requests.length} requests, ${one.engines} engines\n`);
    console.log(
      "| profile | hits % | TTFT ms mean | p50 | p99 | E2E s mean | p50 | p99 | max/mean in flight | not served |",
    );
    console.log("|---|---|---|---|---|---|---|---|---|---|");
  }
  for (const profile of profiles) {
    const row = figures(run(one, requests, profile));
    if (flags.json)
      console.log(JSON.stringify({ workload: one.workload, load: one.load, profile: profile.name, ...row }));
    else {
      const cells = [
        (100 * row.hits).toFixed(1),
        ...[row.ttftMean, row.ttftP50, row.ttftP99].map((micros) => (micros / 1000).toFixed(0)),
        ...[row.e2eMean, row.e2eP50, row.e2eP99].map((micros) => (micros / 1e6).toFixed(2)),
        row.imbalance.toFixed(2),
        String(row.unserved),
      ];
      console.log(`| ${profile.name} | ${cells.join(" | ")} |`);
    }
  }
}

async function read(one: Case, count: number): Promise<WorkloadRequest[]> {
  const seed = Number(flags.seed);
  const options = { ...IMPORT_DEFAULTS, seed, sessionsPerSecond: one.sessionsPerSecond, sharedPrefix: 1 };
  const { requests } = await openWorkload(join(traces, one.path), options);
  const all: WorkloadRequest[] = [];
  for await (const request of requests) {
    if (all.push(request) === count) break;
  }
  const lastStart = all.reduce(
    (last, one) => (one.thinkMicros === undefined ? Math.max(last, one.arrivalMicros) : last),
    0,
  );
  const apart = lastStart + MICROS_PER_SECOND / one.sessionsPerSecond;
  return Array.from({ length: one.copies }, (_, copy) =>
    all.map((request) => copied(request, copy, copy * all.length, copy * apart)),
  ).flat();
}

function copied(request: WorkloadRequest, copy: number, indexBy: number, laterBy: number): WorkloadRequest {
  if (copy === 0) return request;
  const named = (session: string) => `${session}~${copy}`;
  return {
    ...request,
    index: request.index + indexBy,
    arrivalMicros: Math.round(request.arrivalMicros + laterBy),
    session: named(request.session),
    parent: request.parent === undefined ? undefined : { ...request.parent, session: named(request.parent.session) },
    joins: request.joins.map(named),
    blockIds: request.blockIds?.map((id) => (id < COMMON_FROM ? id + copy * COPY_STRIDE : id)),
  };
}

function run(one: Case, requests: readonly WorkloadRequest[], profile: NamedProfile): SimulationResult {
  const engines = Array.from({ length: one.engines }, (_, i): EngineSpec => ({
    config,
    endpoint: {
      id: `engine-${i}`,
      models: [],
      labels: {},
      kvCapacityTokens: (config.kvBlocks - 1) * config.blockTokens,
      concurrencyMax: config.sequencesMax,
    },
  }));
  const seed = Number(flags.seed);
  const { blockTokens } = config;
  return simulate({
    router: {
      seed,
      profiles: { [profile.name]: profile.spec },
      defaultProfile: profile.name,
      blockTokens,
      staleAfterMicros: 3 * MICROS_PER_SECOND,
    },
    engines,
    arrivals: new WorkloadArrivals(requests, {
      seed,
      blockTokens,
      timeoutMicros: Infinity,
      timeScale: 1,
      rateScale: one.rateScale,
    }),
    signals: { mode: "scrape", intervalMicros: MICROS_PER_SECOND, phase: "spread", delayMicros: 5000, lossShare: 0 },
    prefixes: { kind: "approximate" },
    latency: NO_LATENCY,
    horizonMicros: Infinity,
    over: "answered",
    tokenGaps: false,
    check: false,
  });
}

function figures({ metrics, outcomes, requests }: SimulationResult) {
  const ttft = metrics.ttftMicros["all"];
  const e2e = metrics.e2eMicros["all"];
  return {
    hits: metrics.cacheHitRate.gpu,
    ttftMean: ttft?.mean ?? NaN,
    ttftP50: ttft?.p50 ?? NaN,
    ttftP99: ttft?.p99 ?? NaN,
    e2eMean: e2e?.mean ?? NaN,
    e2eP50: e2e?.p50 ?? NaN,
    e2eP99: e2e?.p99 ?? NaN,
    imbalance: imbalance(outcomes),
    unserved: outcomes.length - requests.completed - requests.length,
  };
}

/**
 * Most requests in flight at one endpoint over the mean of all, weighted by time; 1 is balance. Moments with fewer
 * requests than endpoints are left out, since they cannot be even.
 */
function imbalance(outcomes: Outcomes): number {
  const events: { at: number; endpoint: number; step: number }[] = [];
  let endpoints = 0;
  for (let row = 0; row < outcomes.length; row++) {
    const endpoint = outcomes.endpoint[row]!;
    const e2e = outcomes.e2e[row]!;
    if (endpoint < 0 || Number.isNaN(e2e)) continue;
    endpoints = Math.max(endpoints, endpoint + 1);
    const at = outcomes.arrivalAt[row]!;
    events.push({ at, endpoint, step: 1 }, { at: at + e2e, endpoint, step: -1 });
  }
  events.sort((a, b) => a.at - b.at || a.step - b.step);
  const inFlight = new Float64Array(endpoints);
  let total = 0;
  let before = 0;
  let weighted = 0;
  let weight = 0;
  for (const { at, endpoint, step } of events) {
    if (total >= endpoints) {
      weighted += ((Math.max(...inFlight) * endpoints) / total) * (at - before);
      weight += at - before;
    }
    before = at;
    inFlight[endpoint]! += step;
    total += step;
  }
  return weight === 0 ? NaN : weighted / weight;
}
