/**
 * Agent sessions in a closed loop, each turn after the answer before it: how long until the whole of each is done, by
 * policy, beside the times of single requests. The half of WEKA's sessions that no default was chosen on.
 *
 *     BENCH_TRACES=FOLDER npx node bench/agents.ts [--rates 0.05,0.1,0.3] [--requests 2500] [--seeds 0,1,2]
 *         [--profiles gnomon,...]
 *
 * FOLDER holds weka/*.json and weka-more/*.json. Eight simulated H100 engines with Llama 3.1 8B in virtual time, pauses of
 * at most 30 s, every policy under the gauges that it states. Sessions have as many turns each as there is room for.
 */
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { signalsOfProfile } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import type { Metrics } from "#sim/result/metrics.ts";
import { CHOICE_CASES } from "./default-choice/case.ts";
import { choiceWorkload } from "./default-choice/choice-workload.ts";
import { runCase } from "./profiles/run-case.ts";

const { values: flags } = parseArgs({
  options: {
    rates: { type: "string", default: "0.05,0.1,0.3" },
    requests: { type: "string", default: "2500" },
    seeds: { type: "string", default: "0,1,2" },
    profiles: {
      type: "string",
      default: "gnomon,gnomon-added,production-stack-session,lmetric,unified,cognitora-fixed,dynamo",
    },
  },
});
const COLUMNS: readonly (readonly [string, (metrics: Metrics) => number | undefined])[] = [
  ["session s mean", ({ sessionMicros }) => sessionMicros?.mean],
  ["session s p50", ({ sessionMicros }) => sessionMicros?.p50],
  ["session s p99", ({ sessionMicros }) => sessionMicros?.p99],
  ["E2E s mean", ({ e2eMicros }) => e2eMicros["all"]?.mean],
  ["TTFT s mean", ({ ttftMicros }) => ttftMicros["all"]?.mean],
];
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const seeds = flags.seeds.split(",").map(Number);
const profiles = flags.profiles.split(",").map(loadProfile);
const agents = CHOICE_CASES.find(({ halves }) => halves === "sessions")!;
for (const rate of flags.rates.split(",").map(Number)) {
  const one = { ...agents, sessionsPerSecond: rate };
  const workloads = await Promise.all(
    seeds.map((seed) => choiceWorkload(one, "held-out", seed, Number(flags.requests), traces)),
  );
  const rows = profiles.map((profile) => {
    const scrapeMicros = Math.round(signalsOfProfile(profile).intervalMillis * MICROS_PER_MILLI);
    const runs = workloads.map((requests, i) => {
      const study = { ...agents, seed: seeds[i]!, requestsMax: Infinity, half: "all", scrapeMicros } as const;
      return runCase({ rateScale: 1 }, { ...study, fleet: "even" }, requests, profile, scrapeMicros).metrics;
    });
    const cells = COLUMNS.map(([, of]) => spread(runs.map((metrics) => (of(metrics) ?? NaN) / MICROS_PER_SECOND)));
    return [profile.name, ...cells];
  });
  const sessions = new Set(workloads[0]!.map(({ session }) => session)).size;
  console.log(
    `### ${rate} sessions a second: ${sessions} sessions, sub-agents included, ${workloads[0]!.length} requests\n`,
  );
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const head = ["profile", ...COLUMNS.map(([name]) => name)];
  console.log([line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n"), "\n");
}

/** Mean and half the range over the seeds. */
function spread(values: readonly number[]): string {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const digits = mean < 10 ? 2 : mean < 100 ? 1 : 0;
  return `${mean.toFixed(digits)}±${((Math.max(...values) - Math.min(...values)) / 2).toFixed(digits)}`;
}
