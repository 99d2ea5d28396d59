/**
 * Agent sessions in a closed loop, each turn after the answer before it: how long until the whole of each is done, by
 * policy, beside the times of single requests. WEKA's sessions that no default was chosen on: others for each seed.
 *
 *     BENCH_TRACES=FOLDER npx node bench/agents.ts --unseen MORE [--sessions 60] [--rates 0.05,0.1,0.3] [--requests N]
 *         [--seeds 0,1,2] [--profiles gnomon,...]
 *
 * MORE holds sessions of callanjfox/kv-cache-tester, of which those in FOLDER's weka and weka-more are left out. Eight
 * simulated H100 engines with Llama 3.1 8B in virtual time, pauses of at most 30 s, every policy under the gauges that it
 * states. Sessions are whole; with --requests they have as many turns each as there is room for. Figures are means over the
 * seeds; behind those of the other policies how much more it is than under the first one in the same traffic, and half the
 * range of that.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { signalsOfProfile } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import type { Metrics } from "#sim/result/metrics.ts";
import { sessionWorkload, unseenFiles } from "./agents/unseen-sessions.ts";
import { CHOICE_CASES } from "./default-choice/case.ts";
import { runCase } from "./profiles/run-case.ts";

const { values: flags } = parseArgs({
  options: {
    unseen: { type: "string" },
    sessions: { type: "string", default: "60" },
    rates: { type: "string", default: "0.05,0.1,0.3" },
    requests: { type: "string", default: "Infinity" },
    seeds: { type: "string", default: "0,1,2" },
    profiles: {
      type: "string",
      default:
        "gnomon,gnomon-added,gnomon-weighted,production-stack-session,lmetric,unified,cognitora-fixed,dynamo,llm-d",
    },
  },
});
if (flags.unseen === undefined) {
  process.stderr.write("agents: expected --unseen, a folder of WEKA's sessions\n");
  process.exit(2);
}
const COLUMNS: readonly (readonly [string, (metrics: Metrics) => number | undefined])[] = [
  ["session s mean", ({ sessionMicros }) => sessionMicros?.mean],
  ["session s p99", ({ sessionMicros }) => sessionMicros?.p99],
  ["E2E s mean", ({ e2eMicros }) => e2eMicros["all"]?.mean],
  ["E2E s p99", ({ e2eMicros }) => e2eMicros["all"]?.p99],
  ["TTFT s mean", ({ ttftMicros }) => ttftMicros["all"]?.mean],
];
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const count = Number(flags.sessions);
const seeds = flags.seeds.split(",").map(Number);
const profiles = flags.profiles.split(",").map(loadProfile);
const agents = CHOICE_CASES.find(({ halves }) => halves === "sessions")!;
const files = unseenFiles(flags.unseen, [join(traces, "weka"), join(traces, "weka-more")]);
if (files.length < count * (Math.max(...seeds) + 1)) {
  process.stderr.write(`agents: ${files.length} unseen sessions, too few for ${count} of each seed\n`);
  process.exit(2);
}
for (const rate of flags.rates.split(",").map(Number)) {
  const one = { ...agents, sessionsPerSecond: rate };
  const workloads = await Promise.all(
    seeds.map((seed) =>
      sessionWorkload(one, files.slice(seed * count, (seed + 1) * count), seed, Number(flags.requests)),
    ),
  );
  const runs = profiles.map((profile) => {
    const scrapeMicros = Math.round(signalsOfProfile(profile).intervalMillis * MICROS_PER_MILLI);
    return workloads.map((requests, i) => {
      const study = { ...agents, seed: seeds[i]!, requestsMax: Infinity, half: "all", scrapeMicros } as const;
      return runCase({ rateScale: 1 }, { ...study, fleet: "even" }, requests, profile, scrapeMicros).metrics;
    });
  });
  const rows = profiles.map(({ name }, at) => [
    name,
    ...COLUMNS.map(([, of]) => {
      const figures = runs[at]!.map((metrics) => (of(metrics) ?? NaN) / MICROS_PER_SECOND);
      const first = runs[0]!.map((metrics) => (of(metrics) ?? NaN) / MICROS_PER_SECOND);
      return at === 0 ? shown(meanOf(figures)) : `${shown(meanOf(figures))} (${percent(figures, first)})`;
    }),
  ]);
  const requests = workloads.reduce((sum, { length }) => sum + length, 0);
  console.log(
    `### ${rate} sessions a second: ${count} sessions a seed, and their sub-agents, ${requests} requests in all\n`,
  );
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const head = ["profile", ...COLUMNS.map(([name]) => name)];
  console.log([line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n"), "\n");
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function shown(value: number): string {
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}

/** How much more than the first policy in the same traffic: the mean over the seeds and half the range. */
function percent(values: readonly number[], first: readonly number[]): string {
  const more = values.map((value, i) => 100 * (value / first[i]! - 1));
  const mean = meanOf(more);
  return `${mean < 0 ? "" : "+"}${mean.toFixed(1)}±${((Math.max(...more) - Math.min(...more)) / 2).toFixed(1)} %`;
}
