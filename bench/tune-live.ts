/**
 * A policy that `gnomon tune` finds on the first half of a trace, measured on the second half over sockets before emulated
 * engines: what tune predicts of the held-out half beside what the rollout that it wrote measures there, or, with --measure
 * fleets, beside two whole fleets that get the same requests at the same time, one by either profile.
 *
 *     BENCH_TRACES=<folder> npx node bench/tune-live.ts [--case mooncake|weka] [--load moderate|high] [--measure rollout|fleets]
 *         [--in-force llm-d] [--slower 2] [--requests N] [--trials 45] [--windows seconds] [--out folder] [--port 19900]
 *
 * The folder has mooncake/conversation_trace.jsonl and weka/*.json; half of WEKA's sessions are searched and the others
 * driven. Engines and arrivals are --slower times as slow as an H100's, for tune and live alike, so that two cores keep
 * up; where they do not, the last line names it. What is in --out is not done again: `fleets` after `rollout` measures the
 * same policy.
 */
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { RolloutDocument } from "#config/rollout-section.ts";
import { ROLLOUT_SCHEMA } from "#config/rollout-section.ts";
import { MICROS_PER_MILLI } from "#core/units.ts";
import { type LiveRun, troubles } from "./closed-loop/live-run.ts";
import { measuredFleets, type MeasuredRollout, measuredRollout, type Measuring } from "./tune-live/measured.ts";
import { searched, type Searched } from "./tune-live/searched.ts";
import { liveTraffic, type LiveTraffic } from "./tune-live/traffic.ts";

const { values: flags } = parseArgs({
  options: {
    case: { type: "string", default: "mooncake" },
    load: { type: "string", default: "moderate" },
    measure: { type: "string", default: "rollout" },
    "in-force": { type: "string", default: "llm-d" },
    profiles: { type: "string", default: "gnomon,lmetric,unified,gnomon-predicted" },
    slower: { type: "string", default: "2" },
    requests: { type: "string" },
    trials: { type: "string", default: "45" },
    windows: { type: "string" },
    out: { type: "string" },
    port: { type: "string", default: "19900" },
  },
});
const [workload, load] = [flags.case, flags.load];
if ((workload !== "mooncake" && workload !== "weka") || (load !== "moderate" && load !== "high"))
  throw new RangeError(`expected --case mooncake or weka, --load moderate or high, got ${workload} and ${load}`);
if (flags.measure !== "rollout" && flags.measure !== "fleets")
  throw new RangeError(`--measure: expected rollout or fleets, got ${flags.measure}`);
const slower = Number(flags.slower);
const inForce = flags["in-force"];
const folder = flags.out ?? mkdtempSync(join(tmpdir(), "gnomon-tune-live-"));
mkdirSync(folder, { recursive: true });
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const since = performance.now();

const traffic = await liveTraffic(workload, load, {
  traces,
  folder,
  slower,
  ...(flags.requests !== undefined && { requests: Number(flags.requests) }),
});
const { split } = traffic;
print(
  `${workload}, ${load} load at 1/${slower} of the speed: ${traffic.one.engines} engines, ${traffic.workload.length} requests; ` +
    `searched on ${split.searchSessions} conversations, ${split.heldOutRequests} requests of ${split.heldOutSessions} held out`,
);
const found = await searched(traffic, { folder, inForce, trials: flags.trials, profiles: flags.profiles.split(",") });
predicted(found);
if (found.profile === undefined) print("there is no other policy to be measured");
else {
  const measuring: Measuring = { folder, port: Number(flags.port), inForce, profile: found.profile, slower };
  const document = documentOf(found, traffic);
  if (flags.measure === "rollout") rolledOut(document, await measuredRollout(traffic, measuring, document));
  else await wholeFleets(measuring);
}
print(`${((performance.now() - since) / 1000).toFixed(0)} s; ${folder}`);

/** What tune answers for the half that it did not search. */
function predicted({ answer, profile }: Searched): void {
  const { verdict, heldOut, winner, search } = answer;
  print(`tune: ${verdict.kind.toUpperCase()}: ${verdict.reasons.join("; ")}`);
  if (heldOut === undefined || winner === undefined) return;
  const { gain, before, after } = heldOut;
  const origin = winner.origin === "" ? winner.candidate.name : winner.origin;
  print(`  ${profile?.name}: ${origin} (${search?.policies} policies, ${search?.trials} simulations)`);
  print(
    `  predicted: mean E2E ${ms(before)} -> ${ms(after)}, gain ${percent(gain.value)} (${percent(gain.low)} to ${percent(gain.high)})`,
  );
}

/** As tune wrote it, or, where it recommends nothing, a switchback that shows whether that is so. */
function documentOf({ rollout, profile }: Searched, { one }: LiveTraffic): RolloutDocument {
  const design = { kind: "switchback", windowMillis: 5_000 * slower, washoutMillis: 1_000 * slower };
  const named = { arms: [{ name: "control" }, { name: "other", profile: profile!.name }] };
  const made = rollout ?? { name: `to-${profile!.name}-${one.workload}`, ...named, design, plannedCount: 10 };
  const windows = flags.windows === undefined ? undefined : 1_000 * Number(flags.windows);
  const other =
    windows === undefined ? {} : { design: { ...design, windowMillis: windows, washoutMillis: windows / 5 } };
  return ROLLOUT_SCHEMA.parse({ ...made, ...other });
}

function rolledOut(document: RolloutDocument, measuredIn: MeasuredRollout): void {
  const { run, judged, decisions, replayed, differences } = measuredIn;
  const [control, other] = judged.arms;
  const mean = control!.tally.time("e2e", "mean");
  const { measured, adjusted } = judged.differences.find(
    ({ measured: one }) => one.metric === "e2e" && one.figure === "mean",
  )!;
  const gainOf = ({ mean: value, low, high }: typeof measured) =>
    `gain ${percent(-value / mean)} (${Number.isFinite(low) ? `${percent(-high / mean)} to ${percent(-low / mean)}` : "too few for an interval"})`;
  const { kind, ...rest } = document.design;
  const expected = document.predictions.find(({ metric, figure }) => metric === "e2e" && figure === "mean");
  print(
    `  the rollout is a ${kind}${"stepPercents" in rest && kind === "canary" ? ` of ${rest.stepPercents.join(", ")} %` : ""}, windows of ${rest.windowMillis / 1000} s; ` +
      (expected === undefined
        ? "nothing is predicted of what it shows"
        : `predicted to show ${expected.lowMillis.toFixed(0)} to ${expected.highMillis.toFixed(0)} ms of mean E2E`),
  );
  print(
    `  measured by the rollout: mean E2E ${ms(mean)} and ${ms(other!.tally.time("e2e", "mean"))} of ` +
      `${control!.tally.counts.requests} and ${other!.tally.counts.requests} requests, ${measured.count} compared: ${gainOf(measured)}; ` +
      `adjusted by what was predicted of each request: ${gainOf(adjusted)}, ${percent(adjusted.varianceLeft)} of the variance left`,
  );
  print(`  the rollout is ${judged.phase}; ${replayed} of ${decisions} decisions replayed, ${differences} differences`);
  machine("rollout", run);
}

async function wholeFleets(measuring: Measuring): Promise<void> {
  const { gain, runs, means } = await measuredFleets(traffic, measuring);
  print(
    `  measured by two whole fleets at the same time: mean E2E ${ms(means[0]!)} -> ${ms(means[1]!)}, ` +
      `gain ${percent(gain.value)} (${percent(gain.low)} to ${percent(gain.high)})`,
  );
  for (const run of runs) machine(run.profile, run);
}

function machine(name: string, { machine: report, report: { outcomes } }: LiveRun): void {
  const troubled = troubles(report);
  print(
    `  ${name}: ${JSON.stringify(outcomes)}; ${troubled.length === 0 ? "the machine kept up" : `MACHINE BUSY: ${troubled.join(", ")}`}`,
  );
}

function ms(micros: number): string {
  return `${(micros / MICROS_PER_MILLI).toFixed(0)} ms`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
