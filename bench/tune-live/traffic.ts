import { createWriteStream, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/units.ts";
import { PackedWorkload, type Workload, WorkloadPacker } from "#shadow/recorded/packed-workload.ts";
import { type Clusters, clustersOf, waits } from "#shadow/tune/clusters.ts";
import { type SplitTrace, splitTrace } from "#shadow/tune/split-trace.ts";
import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { CASES, type ClosedLoopCase } from "../closed-loop/case.ts";
import { prepareWorkload } from "../closed-loop/prepared-workload.ts";

/** A trace in two halves, and what is driven of it. */
export interface LiveTraffic {
  readonly one: ClosedLoopCase;
  /** All of it, as tune reads it, and its file. */
  readonly workload: Workload;
  readonly file: string;
  readonly clusters: Clusters;
  readonly split: SplitTrace;
  /** Part of the conversations that is searched. */
  readonly share: number;
  /** What is sent: the end of the first half, which fills caches and is compared with, and the second half. */
  readonly driven: string;
  /** The workload's row of each line of it. */
  readonly rows: readonly number[];
  readonly warmUpMillis: number;
}

/** Before what is measured, at the engines' own speed. */
const WARM_UP_SECONDS = 8;
const ENGINES = join(import.meta.dirname, "../../config/engines");
/** Of whole traces; half of them is driven. */
const REQUESTS = { mooncake: 3_200, weka: 1_000 } as const;

/**
 * A case of the closed loop before engines that are `slower` times as slow as theirs, at a rate that is so much lower: to
 * the gateway, the clients and the simulator these are engines of that speed, and a busy machine keeps up with them.
 */
export async function liveTraffic(
  name: ClosedLoopCase["workload"],
  load: ClosedLoopCase["load"],
  options: { readonly traces: string; readonly folder: string; readonly slower: number; readonly requests?: number },
): Promise<LiveTraffic> {
  const { traces, folder, slower } = options;
  const found = CASES.find((one) => one.workload === name && one.load === load);
  if (found === undefined) throw new RangeError(`expected mooncake or weka at moderate or high load, got ${name}`);
  const one = {
    ...found,
    engine: slowerEngine(found.engine, slower, folder),
    requests: options.requests ?? REQUESTS[name],
    rateScale: found.rateScale / slower,
    sessionsPerSecond: found.sessionsPerSecond / slower,
    // Half of the requests are of either half of the sessions.
    inHalves: name === "weka",
  };
  const file = join(folder, "workload.jsonl");
  await prepareWorkload(one, join(traces, one.path), file, 1);
  const workload = await readWorkload(file);
  const clusters = clustersOf(workload);
  const share = one.inHalves ? shareOfHalf(workload, clusters) : 0.5;
  const split = splitTrace(workload, clusters, share);
  const fromMicros = clusters.startMicros[split.searchSessions]! - WARM_UP_SECONDS * slower * MICROS_PER_SECOND;
  const rows = drivenRows(workload, clusters, Math.max(0, fromMicros));
  const driven = join(folder, "driven.jsonl");
  await writeRows(workload, rows, Math.max(0, fromMicros), driven);
  const warmUpMillis = Math.round((WARM_UP_SECONDS * slower * MICROS_PER_SECOND) / MICROS_PER_MILLI);
  return { one, workload, file, clusters, split, share, driven, rows, warmUpMillis };
}

/** The file of an engine whose steps take so many times as long. */
function slowerEngine(name: string, slower: number, folder: string): string {
  const engine = parse(readFileSync(join(ENGINES, `${name}.yaml`), "utf8")) as { stepTime: Record<string, unknown> };
  const stepTime = Object.entries(engine.stepTime).map(([key, value]) => [
    key,
    typeof value === "number" ? value * slower : value,
  ]);
  const file = join(folder, "engine.yaml");
  writeFileSync(file, stringify({ ...engine, stepTime: Object.fromEntries(stepTime) as object }));
  return file;
}

async function readWorkload(file: string): Promise<Workload> {
  const { requests } = await openWorkload(file, { ...IMPORT_DEFAULTS, seed: 0 });
  const packer = new WorkloadPacker();
  for await (const request of requests) packer.push(request);
  return new PackedWorkload(packer.columns());
}

/** Conversations that the first half of the requests is of. */
function shareOfHalf(workload: Workload, { ofRow, startMicros }: Clusters): number {
  const first = new Set(ofRow.subarray(0, Math.floor(workload.length / 2)));
  return first.size / startMicros.length;
}

/** Requests with a time of their own from then on; conversations whose turns wait for one another are sent whole. */
function drivenRows(workload: Workload, { ofRow, startMicros }: Clusters, fromMicros: number): number[] {
  const isSent = (row: number, arrivalMicros: number, isWaiting: boolean) =>
    (isWaiting ? startMicros[ofRow[row]!]! : arrivalMicros) >= fromMicros;
  const waiting = new Set<number>();
  for (const request of workload) if (waits(request)) waiting.add(ofRow[request.index]!);
  return [...workload].flatMap(({ index, arrivalMicros }) =>
    isSent(index, arrivalMicros, waiting.has(ofRow[index]!)) ? [index] : [],
  );
}

async function writeRows(workload: Workload, rows: readonly number[], fromMicros: number, file: string): Promise<void> {
  const out = createWriteStream(file);
  out.write(workloadFileHeader(["the second half of a trace, and what comes before it"]));
  for (const row of rows) {
    const request = workload.at(row)!;
    const line = workloadLine({ ...request, arrivalMicros: Math.max(0, request.arrivalMicros - fromMicros) });
    if (!out.write(line)) await once(out, "drain");
  }
  out.end();
  await once(out, "finish");
}
