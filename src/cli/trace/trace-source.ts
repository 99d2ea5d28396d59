import { existsSync } from "node:fs";
import { ConfigError } from "#config/config-error.ts";
import { ACCESS_LOGS, type RoutedLogKind, readAccessLog, type RoutedLog } from "#trace/import/access-log.ts";
import { detectFormat } from "#trace/import/detect-format.ts";
import { readBlisResult } from "#trace/import/blis-result.ts";
import { readBlisTrace } from "#trace/import/blis-trace.ts";
import { IMPORT_DEFAULTS, type ImportOptions } from "#trace/import/import-options.ts";
import { ImportError, ImportReport } from "#trace/import/import-report.ts";
import { openVllmRun, type VllmRun } from "#trace/import/vllm-run.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { readWorkloadFile } from "#trace/import/workload-file.ts";
import { TraceReader } from "#trace/reader.ts";
import { isTrace } from "#trace/segment-name.ts";
import { recordedTraffic } from "#trace/transform/recorded-traffic.ts";
import { Tally } from "#trace/transform/tally.ts";
import { type TrafficRequest, unobserved } from "#trace/transform/traffic.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { reportNotes } from "./report-notes.ts";

export interface SourceFlags {
  readonly strict: boolean;
  readonly seed: number;
  /** Keys ids of blocks that are made from prompts. */
  readonly key?: string;
  /** TraceV2 whose requests the results of a simulation are of. */
  readonly arrivals?: string;
}

/** A trace of any kind, opened once. */
export interface TraceSource {
  readonly path: string;
  /** "gnomon-trace" for a recorded one. */
  readonly format: string;
  /** The recorded trace itself; undefined for a foreign workload. */
  readonly reader: TraceReader | undefined;
  /** Its requests. Of a recorded trace either these or the reader's items, once. */
  readonly traffic: () => AsyncGenerator<TrafficRequest>;
  /** What a measured run states about its engine; undefined for all else. */
  readonly run: Omit<VllmRun, "traffic"> | undefined;
  /** Of another router's log: where its requests went. */
  readonly routed?: Pick<RoutedLog, "endpoints" | "startWallMicros">;
  /** What was not used, by reason; complete when it was read. */
  readonly notes: () => string[];
}

/** Opens a recorded trace or a foreign workload; throws ConfigError when it is none. */
export async function openTrace(path: string, flags: SourceFlags): Promise<TraceSource> {
  if (!existsSync(path))
    throw new ConfigError([`trace: expected a trace or a workload, got ${path}, which is not there`]);
  if (await isTrace(path)) return recordedSource(path, flags.strict);
  const options = { ...IMPORT_DEFAULTS, seed: flags.seed, strict: flags.strict, key: flags.key ?? "" };
  const { format, files } = await detectFormat(path).catch(refused);
  if (format === "blis") return blisSource(files[0] ?? path, options);
  if (format === "blis-result") {
    const report = new ImportReport(path, format, options.strict);
    return foreignSource(path, report, readBlisResult(path, flags.arrivals, report));
  }
  if (format === "vllm-run") return runSource(path, options);
  const log = ACCESS_LOGS.find((one) => one === format);
  const routed = log === undefined ? undefined : await logSource(files[0] ?? path, log, options);
  // Spans may name no upstream: they are a workload then.
  if (routed !== undefined && (log !== "otel-spans" || routed.routed?.endpoints.length !== 0)) return routed;
  if (format === "workload") {
    const report = new ImportReport(path, format, options.strict);
    return foreignSource(path, report, unobserved(readWorkloadFile(files[0] ?? path, report)));
  }
  const { report, requests } = await openWorkload(path, options).catch(refused);
  return foreignSource(path, report, unobserved(requests));
}

export async function* requestsOf(source: Pick<TraceSource, "traffic">): AsyncGenerator<WorkloadRequest> {
  for await (const { request } of source.traffic()) yield request;
}

/** What may go wrong while a trace is read or written, as one line for people. */
export async function withPlainErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ConfigError || error instanceof CommandFailure) throw error;
    if (error instanceof ImportError) return refused(error);
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
}

function recordedSource(path: string, strict: boolean): TraceSource {
  const reader = new TraceReader(path, { strict });
  const left = new Tally();
  return {
    path,
    format: "gnomon-trace",
    reader,
    run: undefined,
    traffic: () => recordedTraffic(reader.items(), left),
    notes: () => [
      ...left.entries().map(([reason, count]) => `${count} requests left out: ${reason}`),
      ...reportNotes(reader.report),
    ],
  };
}

async function runSource(path: string, options: ImportOptions): Promise<TraceSource> {
  const report = new ImportReport(path, "vllm-run", options.strict);
  const { traffic, ...run } = await openVllmRun(path, options, report).catch(refused);
  const source = foreignSource(path, report, traffic);
  return { ...source, run, notes: () => [...run.notes, ...source.notes()] };
}

async function logSource(path: string, log: RoutedLogKind, options: ImportOptions): Promise<TraceSource> {
  const report = new ImportReport(path, log, options.strict);
  const { requests, ...routed } = await readAccessLog(path, log, report).catch(refused);
  return { ...foreignSource(path, report, inTurn(requests)), routed };
}

async function* inTurn<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}

function blisSource(path: string, options: ImportOptions): TraceSource {
  const report = new ImportReport(path, "blis", options.strict);
  return foreignSource(path, report, readBlisTrace(path, report));
}

function foreignSource(path: string, report: ImportReport, traffic: AsyncGenerator<TrafficRequest>): TraceSource {
  return {
    path,
    format: report.format,
    reader: undefined,
    run: undefined,
    traffic: () => traffic,
    notes: () => [
      ...[...report.refused].map(([reason, count]) => `${count} records left out: ${reason}`),
      ...report.adjustedLines(),
      ...report.places.map((place) => `  ${place}`),
    ],
  };
}

function refused(error: unknown): never {
  throw error instanceof ImportError ? new ConfigError(error.message.split("\n")) : error;
}
