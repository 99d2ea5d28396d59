/**
 * Every routing profile on recorded and generated workloads, over simulated engines in virtual time: what it does to
 * cache hits, latency and balance. Prints a Markdown table per workload and load, best mean E2E first.
 *
 *     BENCH_TRACES=<folder> npx node bench/profiles.ts [--workload mooncake|weka|azure|lmcache|chatbot|documents]
 *         [--load moderate|high] [--half all|first|second] [--profiles a,b,path.yaml] [--requests n] [--engines n]
 *         [--fleet even|mixed] [--signals own|<milliseconds>] [--seed n] [--json]
 *
 * The folder holds mooncake/conversation_trace.jsonl, weka/*.json, azure/AzureLLMInferenceTrace_code.csv and
 * lmcache/*.jsonl. Engines are H100 with Llama 3.1 8B (mixed: every second one an A100). Gauges are read as often as
 * a profile states (its `signals`: llm-d and AIBrix every 50 ms, gnomon every second), gnomon's
 * own profiles also as often as each of the others', and are late by 5 ms; --signals 1000 reads all every second.
 * Prefixes are known from the router's own decisions. All of a table's figures come from the same arrivals. --half
 * keeps what a choice is made on apart from what it is judged by: the trace's first or second half, every second
 * conversation, or another draw of a generator. --engines scales the rate too.
 */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { type NamedProfile, loadProfile, profileNames } from "#config/profile-file.ts";
import { signalsOfProfile } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import { CASES, type Case, ENGINES_DEFAULT, LOADS, type Study, WORKLOADS } from "./profiles/case.ts";
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
    signals: { type: "string", default: "own" },
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
  scrapeMicros: flags.signals === "own" ? "own" : Math.round(positive("signals", flags.signals) * MICROS_PER_MILLI),
};
const workload = flags.workload === undefined ? undefined : oneOf("workload", flags.workload, WORKLOADS);
const load = flags.load === undefined ? undefined : oneOf("load", flags.load, LOADS);
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const profiles = (flags.profiles?.split(",") ?? profileNames()).map(loadProfile);
for (const one of CASES) {
  if ((workload === undefined || workload === one.workload) && (load === undefined || load === one.load)) {
    if (one.halves !== "draws" && !existsSync(traces)) fail(`no traces in ${traces}; set BENCH_TRACES to their folder`);
    await report(one);
  }
}

interface Row {
  readonly profile: NamedProfile;
  readonly scrapeMicros: Micros;
}

/** Every profile under its own gauges, and gnomon's own under each of the others' too; or all under the same. */
function rowsOf(all: readonly NamedProfile[], { scrapeMicros }: Study): Row[] {
  if (scrapeMicros !== "own") return all.map((profile) => ({ profile, scrapeMicros }));
  const own = (profile: NamedProfile): Micros =>
    Math.round(signalsOfProfile(profile).intervalMillis * MICROS_PER_MILLI);
  const intervals = new Set(all.map(own));
  return all.flatMap((profile) => {
    const others = profile.name.startsWith("gnomon")
      ? [...intervals].filter((interval) => interval !== own(profile))
      : [];
    return [own(profile), ...others].map((interval) => ({ profile, scrapeMicros: interval }));
  });
}

async function report(one: Case): Promise<void> {
  const requests = await caseWorkload(one, study, traces);
  const { half, engines, fleet } = study;
  const asked = rowsOf(profiles, study);
  const rows: (Row & { readonly figures: Figures })[] = [];
  for (const [i, { profile, scrapeMicros }] of asked.entries()) {
    const before = performance.now();
    const figures = figuresOf(runCase(one, study, requests, profile, scrapeMicros));
    const seconds = ((performance.now() - before) / 1000).toFixed(1);
    console.error(`${one.workload} ${one.load} ${i + 1}/${asked.length} ${profile.name}: ${seconds} s`);
    rows.push({ profile, scrapeMicros, figures });
    if (flags.json) {
      const line = {
        workload: one.workload,
        load: one.load,
        ...study,
        profile: profile.name,
        scrapeMicros,
        ...figures,
      };
      console.log(JSON.stringify(line));
    }
  }
  if (flags.json) return;
  rows.sort((a, b) => a.figures.e2eMean - b.figures.e2eMean);
  const part = half === "all" ? "" : `, ${half} half`;
  console.log(
    `\n### ${one.workload}${part}, ${one.load} load: ${requests.length} requests, ${engines} engines, ${fleet}\n`,
  );
  console.log(`| profile | gauges ms | ${FIGURES_HEAD.join(" | ")} |`);
  console.log(`|---|---|${FIGURES_HEAD.map(() => "---|").join("")}`);
  for (const { profile, scrapeMicros, figures } of rows) {
    console.log(`| ${profile.name} | ${scrapeMicros / MICROS_PER_MILLI} | ${figureCells(figures).join(" | ")} |`);
  }
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
