/**
 * AIBrix's VTC and the paper's variants of it where tenants differ: one asks ten times as often as each of three others,
 * with longer prompts and answers.
 *
 *     node bench/tenants.ts [--profiles vtc-basic,vtc-fair,...] [--rate 16] [--engines 4] [--seed 42]
 *
 * Simulated engines of H100 with Llama 3.1 8B. Tenants `even-1` to `even-3` ask the same. Of
 * each profile: what the light tenants and the heavy one wait, how far the light ones' means lie apart, and on how many
 * engines each group's requests went. VTC chooses an engine and orders no queue: what it can do for fairness is to keep a
 * tenant away from engines.
 */
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { SimulationResult } from "#sim/simulate.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { Case, Study } from "./profiles/case.ts";
import { runCase } from "./profiles/run-case.ts";

const { values } = parseArgs({
  options: {
    profiles: {
      type: "string",
      default: "vtc-basic,vtc-fair,vtc-max-fair,vtc-pred,aibrix-least-request,random,gnomon",
    },
    rate: { type: "string", default: "16" },
    engines: { type: "string", default: "4" },
    seed: { type: "string", default: "42" },
    conversations: { type: "string", default: "6000" },
  },
});
const seed = Number(values.seed);
const study: Study = {
  seed,
  requestsMax: Infinity,
  half: "all",
  engines: Number(values.engines),
  fleet: "even",
  scrapeMicros: MICROS_PER_SECOND / 20,
};
/** Rates are those of the specification, whatever the number of engines. */
const rateScale = 8 / study.engines;
const one: Case = {
  workload: "chatbot",
  load: "moderate",
  path: "",
  rateScale,
  copies: 1,
  sessionsPerSecond: 1,
  halves: "draws",
};

const light = (name: string) => `
  - name: ${name}
    tenant: ${name}
    weight: 1
    userTokens: { distribution: normal, mean: 400, stddev: 100, min: 16, max: 1024 }
    outputTokens: { distribution: normal, mean: 120, stddev: 40, min: 2, max: 400 }`;
const spec = `
conversations: ${values.conversations}
arrivals: { process: poisson, ratePerSecond: ${values.rate} }
groups:${["even-1", "even-2", "even-3"].map(light).join("")}
  - name: heavy
    tenant: heavy
    weight: 10
    userTokens: { distribution: normal, mean: 3000, stddev: 800, min: 64, max: 8000 }
    outputTokens: { distribution: normal, mean: 300, stddev: 100, min: 2, max: 1000 }
`;

const requests: WorkloadRequest[] = [];
for (const request of synthesize(
  parseSyntheticSpec("tenants", spec),
  seed,
  new ImportReport("tenants", "synthetic", true),
))
  requests.push(request);

const head = [
  "profile",
  "light TTFT ms",
  "p99",
  "heavy TTFT ms",
  "p99",
  "light E2E s",
  "heavy E2E s",
  "light apart",
  "engines light / heavy",
];
process.stdout.write(`| ${head.join(" | ")} |\n${"|---".repeat(head.length)}|\n`);
for (const name of values.profiles.split(",")) {
  const result = runCase(one, study, requests, loadProfile(name), study.scrapeMicros as number);
  process.stdout.write(`| ${[name, ...cells(result)].join(" | ")} |\n`);
}

interface Group {
  readonly ttft: readonly number[];
  readonly e2e: readonly number[];
  /** Requests by engine. */
  readonly engines: readonly number[];
}

function groupOf({ outcomes }: SimulationResult, tenants: (name: string) => boolean): Group {
  const [ttft, e2e, engines] = [[] as number[], [] as number[], Array.from({ length: study.engines }, () => 0)];
  for (let row = 0; row < outcomes.length; row++) {
    if (!tenants(outcomes.tenants[outcomes.tenant[row]!]!) || Number.isNaN(outcomes.e2e[row]!)) continue;
    ttft.push(outcomes.ttft[row]!);
    e2e.push(outcomes.e2e[row]!);
    engines[outcomes.endpoint[row]!]!++;
  }
  return { ttft, e2e, engines };
}

function cells(result: SimulationResult): string[] {
  const [even, heavy] = [groupOf(result, (name) => name !== "heavy"), groupOf(result, (name) => name === "heavy")];
  const means = [1, 2, 3].map((i) => mean(groupOf(result, (name) => name === `even-${i}`).ttft));
  const millis = (micros: number) => (micros / 1_000).toFixed(0);
  const seconds = (micros: number) => (micros / MICROS_PER_SECOND).toFixed(2);
  return [
    millis(mean(even.ttft)),
    millis(p99(even.ttft)),
    millis(mean(heavy.ttft)),
    millis(p99(heavy.ttft)),
    seconds(mean(even.e2e)),
    seconds(mean(heavy.e2e)),
    `${(100 * (Math.max(...means) / Math.min(...means) - 1)).toFixed(0)} %`,
    `${effective(even.engines).toFixed(1)} / ${effective(heavy.engines).toFixed(1)}`,
  ];
}

function mean(all: readonly number[]): number {
  return all.reduce((sum, value) => sum + value, 0) / all.length;
}

function p99(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(0.99 * (all.length - 1))] ?? NaN;
}

/**
 * Engines that would have the same sum of squared shares if all had the same: all of them where requests are spread
 * evenly.
 */
function effective(counts: readonly number[]): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return 1 / counts.reduce((sum, count) => sum + (count / total) ** 2, 0);
}
