/**
 * What sharing between gateways is worth: several routers in front of one simulated fleet, in virtual time, on recorded
 * traffic. Each knows what the others did after a lag, or never. Prints a Markdown table per workload and load.
 *
 *     BENCH_TRACES=<folder> npx node bench/sharing.ts [--workload mooncake|weka] [--load moderate|high]
 *         [--routers 1,2,4,8] [--lags 0,10,100,1000,none] [--spread round-robin|session] [--profile gnomon]
 *         [--requests n] [--engines n] [--seed n]
 *
 * Workloads, engines and figures are those of bench/profiles.ts; gauges are read every second by each router. Requests
 * come to the routers in turn, so that a conversation's turns meet different ones, or (session) stay with one.
 */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { signalsOfProfile } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { ROUTER_SPREADS, type RoutersOptions } from "#sim/setting/routers-options.ts";
import { CASES, type Case, ENGINES_DEFAULT, LOADS, type Study } from "./profiles/case.ts";
import { caseWorkload } from "./profiles/case-workload.ts";
import { type Figures, figuresOf } from "./profiles/figures.ts";
import { runCase } from "./profiles/run-case.ts";

const { values: flags } = parseArgs({
  options: {
    workload: { type: "string" },
    load: { type: "string" },
    routers: { type: "string", default: "1,2,4,8" },
    lags: { type: "string", default: "0,10,100,1000,none" },
    spread: { type: "string", default: "round-robin" },
    profile: { type: "string", default: "gnomon" },
    requests: { type: "string", default: "4000" },
    engines: { type: "string", default: String(ENGINES_DEFAULT) },
    seed: { type: "string", default: "42" },
  },
});
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const profile = loadProfile(flags.profile);
const study: Study = {
  seed: number("seed", flags.seed),
  requestsMax: number("requests", flags.requests),
  half: "all",
  engines: number("engines", flags.engines),
  fleet: "even",
  scrapeMicros: Math.round(signalsOfProfile(profile).intervalMillis * MICROS_PER_MILLI),
};
const spread = ROUTER_SPREADS.find((one) => one === flags.spread) ?? fail(`--spread: got ${flags.spread}`);
const workloads = flags.workload === undefined ? ["mooncake", "weka"] : [flags.workload];
const loads = flags.load === undefined ? LOADS : LOADS.filter((load) => load === flags.load);
const counts = flags.routers.split(",").map((text) => number("routers", text));
const lags = flags.lags.split(",");
if (!existsSync(traces)) fail(`no traces in ${traces}; set BENCH_TRACES to their folder`);
for (const one of CASES) if (workloads.includes(one.workload) && loads.includes(one.load)) await report(one);

async function report(one: Case): Promise<void> {
  const requests = await caseWorkload(one, study, traces);
  const how = spread === "session" ? "conversations stay with a router" : "requests in turn";
  console.log(
    `\n### ${one.workload}, ${one.load} load: ${requests.length} requests, ${study.engines} engines, ${how}\n`,
  );
  const heads = [
    "routers",
    "news after",
    "hits %",
    "TTFT ms mean",
    "p50",
    "p99",
    "E2E s mean",
    "p99",
    "max/mean in flight",
  ];
  console.log(`| ${heads.join(" | ")} |\n|${heads.map(() => "---").join("|")}|`);
  for (const count of counts) {
    for (const lag of count === 1 ? ["-"] : lags) {
      const routers = count === 1 ? undefined : { count, shareLagMicros: microsOf(lag), spread };
      console.log(`| ${count} | ${lagText(lag)} | ${cells(figures(one, requests, routers)).join(" | ")} |`);
    }
  }
}

function figures(one: Case, requests: Parameters<typeof runCase>[2], routers: RoutersOptions | undefined): Figures {
  const { scrapeMicros } = study;
  return figuresOf(runCase(one, study, requests, profile, scrapeMicros === "own" ? 0 : scrapeMicros, { routers }));
}

function cells({ hits, ttftMean, ttftP50, ttftP99, e2eMean, e2eP99, imbalance }: Figures): string[] {
  return [
    (100 * hits).toFixed(1),
    ...[ttftMean, ttftP50, ttftP99].map((micros) => (micros / 1000).toFixed(0)),
    ...[e2eMean, e2eP99].map((micros) => (micros / 1e6).toFixed(2)),
    imbalance.toFixed(2),
  ];
}

function lagText(lag: string): string {
  return lag === "-" ? "" : lag === "none" ? "never" : `${lag} ms`;
}

function microsOf(lag: string): number | undefined {
  return lag === "none" ? undefined : number("lags", lag) * MICROS_PER_MILLI;
}

function number(flag: string, given: string): number {
  const value = Number(given);
  return Number.isSafeInteger(value) && value >= 0 ? value : fail(`--${flag}: expected a whole number, got ${given}`);
}

function fail(message: string): never {
  console.error(`bench: ${message}`);
  process.exit(2);
}
