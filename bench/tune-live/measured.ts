import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { join } from "node:path";
import { stringify } from "yaml";
import { loadEngine } from "#config/engine-file.ts";
import type { RolloutDocument } from "#config/rollout-section.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { MICROS_PER_SECOND } from "#core/units.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { recordedSetting } from "#shadow/recorded/recorded-setting.ts";
import { judgedRollout, type JudgedRollout, recordedControl } from "#shadow/rollout/judged-rollout.ts";
import { type Gain, gainOf } from "#shadow/tune/gain.ts";
import type { Objective } from "#shadow/tune/objective.ts";
import { sessionUnits, timeUnits } from "#shadow/tune/time-units.ts";
import { TraceReader } from "#trace/reader.ts";
import { type LiveRun, liveRun } from "../closed-loop/live-run.ts";
import { writeWarmUp } from "../closed-loop/warm-up.ts";
import { traceOfStorm } from "../policy/storm.ts";
import type { LiveTraffic } from "./traffic.ts";

const MEAN_E2E: Objective = { kind: "time", metric: "e2eMicros", figure: "mean" };

export interface Measuring {
  readonly folder: string;
  readonly port: number;
  readonly inForce: string;
  readonly profile: { readonly name: string; readonly spec: ProfileSpec };
  readonly slower: number;
}

export interface MeasuredRollout {
  readonly run: LiveRun;
  readonly judged: JudgedRollout;
  /** Of the trace: decisions, those that were replayed, and those that differed. */
  readonly decisions: number;
  readonly replayed: number;
  readonly differences: number;
}

/** The second half, sent to a gateway that starts the rollout when the first half's end has been through. */
export async function measuredRollout(
  traffic: LiveTraffic,
  measuring: Measuring,
  rollout: RolloutDocument,
): Promise<MeasuredRollout> {
  const { profile, inForce } = measuring;
  const run = await driven(traffic, measuring, "rollout", inForce, {
    profiles: { [profile.name]: profile.spec },
    rollout: { lookMillis: 500, start: [{ ...rollout, baselineMillis: traffic.warmUpMillis }] },
  });
  const items = () => new TraceReader(run.trace).items();
  const control = await recordedControl(items(), rollout.name);
  if (typeof control === "string") throw new Error(control);
  const recorded = await readRecordedRun(items(), "named");
  const engine = loadEngine(traffic.one.engine);
  const setting = recordedSetting(recorded, { engine, residuals: undefined, signals: scrapedEvery(MICROS_PER_SECOND) });
  const judged = await judgedRollout(control, { ...setting, fleetEvents: [] }, recorded.requestIds ?? [], items());
  const { replay, decisions } = await traceOfStorm(run.trace);
  return { run, judged, decisions, replayed: replay.decisions, differences: replay.differences };
}

/**
 * The second half by either profile, each before a fleet of its own, and the gain of the held-out requests as tune's
 * own interval has it. Both get the same arrivals at the same time, so that a moment in which the machine is busy is
 * one of both.
 */
export async function measuredFleets(
  traffic: LiveTraffic,
  measuring: Measuring,
): Promise<{ readonly gain: Gain; readonly runs: readonly LiveRun[]; readonly means: readonly number[] }> {
  const { profile, inForce } = measuring;
  const profiles = { [profile.name]: profile.spec };
  const fleets = [
    ["fleet-in-force", inForce],
    ["fleet-tuned", profile.name],
  ] as const;
  const runs = await Promise.all(
    fleets.map(([name, own], i) => {
      const port = measuring.port + i * (traffic.one.engines + 1);
      return driven(traffic, { ...measuring, port }, name, own, { profiles });
    }),
  );
  const [before, after] = ["fleet-in-force", "fleet-tuned"].map((name) =>
    losses(traffic, requestsFile(measuring, name)),
  ) as [DrivenLosses, DrivenLosses];
  const { heldOut } = traffic.split;
  const sessions = sessionUnits(traffic.clusters.ofRow, heldOut, traffic.clusters.startMicros.length);
  const pair = { before: before.losses, after: after.losses };
  const gains = [sessions, timeUnits(before.sentMicros, heldOut)].map((units) => gainOf(MEAN_E2E, [pair], units, 1));
  const [bySessions, byTime] = gains;
  if (bySessions === undefined || byTime === undefined) throw new Error("no request was answered by both");
  const gain = {
    ...bySessions,
    low: Math.min(bySessions.low, byTime.low),
    high: Math.max(bySessions.high, byTime.high),
  };
  return { gain, runs, means: [before, after].map((one) => meanOf(one.losses, heldOut)) };
}

async function driven(
  { one, driven: workload }: LiveTraffic,
  { folder, port, slower, ...measuring }: Measuring,
  name: string,
  profile: string,
  config: object,
): Promise<LiveRun> {
  const kept = join(folder, `${name}.run.json`);
  if (existsSync(kept)) return JSON.parse(readFileSync(kept, "utf8")) as LiveRun;
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, stringify(config, { aliasDuplicateObjects: false }));
  const warmUp = join(folder, `${name}.warm-up.jsonl`);
  writeWarmUp(warmUp, slower);
  const run = await liveRun({
    one,
    profile,
    workload,
    warmUp,
    folder,
    port,
    timeScale: 1,
    seed: 1,
    config: { file, name },
    requestsOut: requestsFile({ folder, port, slower, ...measuring }, name),
  });
  writeFileSync(kept, JSON.stringify(run));
  return run;
}

function requestsFile({ folder }: Measuring, name: string): string {
  return join(folder, `${name}.requests.jsonl`);
}

interface DrivenLosses {
  /** In the workload's order; NaN for what was not driven, or failed. */
  readonly losses: Float64Array;
  readonly sentMicros: Float64Array;
}

interface DrivenLine {
  readonly index: number;
  readonly outcome: string;
  readonly sentMicros: number;
  readonly endMicros: number;
}

/** E2E of each request as its client measured it. */
function losses({ rows, workload }: LiveTraffic, file: string): DrivenLosses {
  const values = new Float64Array(workload.length).fill(NaN);
  const sentMicros = new Float64Array(workload.length).fill(NaN);
  for (const line of readFileSync(file, "utf8").split("\n")) {
    if (line === "") continue;
    const one = JSON.parse(line) as DrivenLine;
    const row = rows[one.index]!;
    sentMicros[row] = one.sentMicros;
    if (one.outcome !== "ok") continue;
    values[row] = one.endMicros - one.sentMicros;
  }
  return { losses: values, sentMicros };
}

function meanOf(values: Float64Array, counts: Uint8Array): number {
  const known = values.filter((value, row) => counts[row] === 1 && !Number.isNaN(value));
  return known.reduce((sum, value) => sum + value, 0) / known.length;
}
