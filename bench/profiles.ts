/**
 * Every routing profile on recorded and generated workloads, over simulated engines in virtual time: what it does to
 * cache hits, latency and balance. Prints a Markdown table per workload and load, best mean E2E first.
 *
 *     GNOMON_TRACES=<folder> npx node bench/profiles.ts [--workload mooncake|weka|azure|lmcache|chatbot|documents]
 *         [--load moderate|high] [--half all|first|second] [--profiles a,b,path.yaml] [--requests n] [--engines n]
 *         [--fleet even|mixed] [--scrape-seconds n] [--seed n] [--json]
 *
 * The folder holds mooncake/conversation_trace.jsonl, weka/*.json, azure/AzureLLMInferenceTrace_code.csv and
 * lmcache/*.jsonl. Engines are H100 with Llama 3.1 8B (mixed: every second one an A100); signals are scraped every
 * second and are late by 5 ms; prefixes are known from the router's own decisions. All of a table's figures come from
 * the same arrivals. --half keeps what a choice is made on apart from what it is judged by: the trace's first or second
 * half, every second conversation, or another draw of a generator. --engines scales the rate too.
 */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { type NamedProfile, loadProfile, profileNames } from "#config/profile-file.ts";
import { MICROS_PER_SECOND } from "#core/units.ts";
import {
  CASES,
  type Case,
  ENGINES_DEFAULT,
  LOADS,
  SCRAPE_MICROS_DEFAULT,
  type Study,
  WORKLOADS,
} from "./profiles/case.ts";
import { caseWorkload } from "./profiles/case-workload.ts";
import { FIGURES_HEAD, type Figures, figureCells, figuresOf } from "./profiles/figures.ts";
import { runCase } from "./profiles/run-case.ts";

const { values: flags } = parseArgs({
  options: {
    workload: { type: "string" },
    load: { type: "string" },
    half: { type: "string", default: "all" },
    profiles: { type: "string" },
    requests: { type: "string", default: "4000" },
    engines: { type: "string", default: String(ENGINES_DEFAULT) },
    fleet: { type: "string", default: "even" },
    "scrape-seconds": { type: "string", default: String(SCRAPE_MICROS_DEFAULT / MICROS_PER_SECOND) },
    seed: { type: "string", default: "42" },
    json: { type: "boolean", default: false },
  },
});
const study: Study = {
  seed: wholeNumber("seed", flags.seed, 0),
  requestsMax: wholeNumber("requests", flags.requests, 1),
  half: oneOf("half", flags.half, ["all", "first", "second"]),
  engines: wholeNumber("engines", flags.engines, 1),
  fleet: oneOf("fleet", flags.fleet, ["even", "mixed"]),
  scrapeMicros: Math.round(positive("scrape-seconds", flags["scrape-seconds"]) * MICROS_PER_SECOND),
};
const workload = flags.workload === undefined ? undefined : oneOf("workload", flags.workload, WORKLOADS);
const load = flags.load === undefined ? undefined : oneOf("load", flags.load, LOADS);
const traces = process.env["GNOMON_TRACES"] ?? "../shared/traces";
const profiles = (flags.profiles?.split(",") ?? profileNames()).map(loadProfile);
for (const one of CASES) {
  if ((workload === undefined || workload === one.workload) && (load === undefined || load === one.load)) {
    if (one.halves !== "draws" && !existsSync(traces))
      fail(`no traces in ${traces}; set GNOMON_TRACES to their folder`);
    await report(one);
  }
}

async function report(one: Case): Promise<void> {
  const requests = await caseWorkload(one, study, traces);
  const { half, engines, fleet } = study;
  const rows: { profile: NamedProfile; figures: Figures }[] = [];
  for (const [i, profile] of profiles.entries()) {
    const before = performance.now();
    const figures = figuresOf(runCase(one, study, requests, profile));
    const seconds = ((performance.now() - before) / 1000).toFixed(1);
    console.error(`${one.workload} ${one.load} ${i + 1}/${profiles.length} ${profile.name}: ${seconds} s`);
    rows.push({ profile, figures });
    if (flags.json) {
      const line = { workload: one.workload, load: one.load, ...study, profile: profile.name, ...figures };
      console.log(JSON.stringify(line));
    }
  }
  if (flags.json) return;
  rows.sort((a, b) => a.figures.e2eMean - b.figures.e2eMean);
  const part = half === "all" ? "" : `, ${half} half`;
  console.log(
    `\n### ${one.workload}${part}, ${one.load} load: ${requests.length} requests, ${engines} engines, ${fleet}\n`,
  );
  console.log(`| profile | ${FIGURES_HEAD.join(" | ")} |`);
  console.log(`|---|${FIGURES_HEAD.map(() => "---|").join("")}`);
  for (const row of rows) console.log(`| ${row.profile.name} | ${figureCells(row.figures).join(" | ")} |`);
}

function oneOf<const T extends string>(flag: string, given: string, accepted: readonly T[]): T {
  return (
    accepted.find((name) => name === given) ?? fail(`--${flag}: expected one of ${accepted.join(", ")}, got ${given}`)
  );
}

function wholeNumber(flag: string, given: string, least: number): number {
  const value = Number(given);
  return Number.isSafeInteger(value) && value >= least
    ? value
    : fail(`--${flag}: expected a whole number of at least ${least}, got ${given}`);
}

function positive(flag: string, given: string): number {
  const value = Number(given);
  return value > 0 && value < Infinity ? value : fail(`--${flag}: expected a number above 0, got ${given}`);
}

function fail(message: string): never {
  console.error(`bench: ${message}`);
  process.exit(2);
}
