import { statSync } from "node:fs";
import { ConfigError } from "#config/config-error.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import type { SloTargets } from "#sim/result/slo.ts";
import { WorkloadArrivals, type WorkloadArrivalsOptions } from "#sim/source/workload-arrivals.ts";
import { ImportError, ImportReport, type WorkloadFormat } from "#trace/import/import-report.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { workloadFile } from "#trace/import/named-workload.ts";
import { specFormat } from "#trace/import/spec-format.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { loadSyntheticSpec, type SyntheticSpec } from "#trace/import/synthetic-spec.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { parseSlo } from "../flag/slo-flag.ts";
import type { SimulateFlags } from "./simulate-flags.ts";

export interface WorkloadPlan {
  /** As it was asked for. */
  readonly name: string;
  /** What classes are promised, by the flags or else by the specification; their clients state it with each request. */
  readonly targets: SloTargets;
  /** The same requests each time, from the start. */
  arrivals(): WorkloadArrivals;
}

type Opened = Omit<WorkloadPlan, "name">;

interface Asked {
  readonly blockTokens: number;
  /** Targets that flags name. */
  readonly asked: SloTargets | undefined;
}

/** Opens the workload that flags name: a specification is generated as it is needed, a recorded one is read first. */
export async function workloadPlan(flags: SimulateFlags, blockTokens: number): Promise<WorkloadPlan> {
  if (flags.workloadSpec !== undefined && flags.workload !== undefined)
    throw new ConfigError(["--workload: expected to be alone, got it together with --workload-spec"]);
  const name = flags.workloadSpec ?? flags.workload ?? "chatbot";
  try {
    const path = workloadFile(name);
    const format = await formatOf(path);
    const asked = flags.slo === undefined ? undefined : parseSlo(flags.slo);
    const open = format === "synthetic" ? generated : recorded;
    return { name, ...(await open(path, flags, { blockTokens, asked })) };
  } catch (error) {
    if (error instanceof ImportError) throw new ConfigError(error.message.split("\n"));
    throw error;
  }
}

/** What reads the other formats is loaded only now, and with it cryptography and decompression. */
async function formatOf(path: string): Promise<WorkloadFormat> {
  if (/\.ya?ml$/.test(path) && statSync(path, { throwIfNoEntry: false })?.isFile() === true) return specFormat(path);
  return (await (await import("#trace/import/detect-format.ts")).detectFormat(path)).format;
}

function targetsOf(spec: SyntheticSpec): SloTargets {
  const micros = (millis: number | undefined) => (millis === undefined ? Infinity : millis * MICROS_PER_MILLI);
  return Object.fromEntries(
    Object.entries(spec.sloTargets).map(([sloClass, { ttftMillis, tpotMillis, e2eMillis }]) => [
      sloClass,
      { ttftMicros: micros(ttftMillis), tpotMicros: micros(tpotMillis), e2eMicros: micros(e2eMillis) },
    ]),
  );
}

async function generated(path: string, flags: SimulateFlags, { blockTokens, asked }: Asked): Promise<Opened> {
  const spec = atRate(await loadSyntheticSpec(path), flags.rate);
  const requests = () =>
    first(synthesize(spec, flags.seed, new ImportReport(path, "synthetic", true)), flags.numRequests);
  const targets = asked ?? targetsOf(spec);
  return {
    targets,
    arrivals: () => arrivalsOf(requests(), flags, { blockTokens, targets, rateScale: flags.rateScale }),
  };
}

function atRate(spec: SyntheticSpec, ratePerSecond: number | undefined): SyntheticSpec {
  if (ratePerSecond === undefined) return spec;
  if (spec.arrivals.process === "together") throw notSpread();
  return { ...spec, arrivals: { ...spec.arrivals, ratePerSecond } };
}

async function recorded(path: string, flags: SimulateFlags, { blockTokens, asked }: Asked): Promise<Opened> {
  // Loaded only now: most runs generate their workload.
  const { openWorkload } = await import("#trace/import/open-workload.ts");
  const { report, requests } = await openWorkload(path, { ...IMPORT_DEFAULTS, seed: flags.seed });
  const read: WorkloadRequest[] = [];
  for await (const request of requests) {
    if (read.push(request) === flags.numRequests) break;
  }
  if (read.length === 0)
    throw new ConfigError([`${path}: expected a workload with requests, got none`, ...report.places]);
  const rateScale = flags.rateScale * (flags.rate === undefined ? 1 : flags.rate / meanRate(read));
  if (report.refusedTotal > 0) {
    process.stderr.write(`${path}: ${report.refusedTotal} records left out: ${report.places[0] ?? ""}\n`);
  }
  for (const line of report.adjustedLines()) process.stderr.write(`${path}: ${line}\n`);
  const targets = asked ?? {};
  return { targets, arrivals: () => arrivalsOf(read, flags, { blockTokens, targets, rateScale }) };
}

function arrivalsOf(
  requests: Iterable<WorkloadRequest>,
  flags: SimulateFlags,
  given: Pick<WorkloadArrivalsOptions, "blockTokens" | "rateScale" | "targets">,
): WorkloadArrivals {
  const timeoutMicros = flags.timeout === undefined ? Infinity : Math.round(flags.timeout * MICROS_PER_SECOND);
  const { seed, answers } = flags;
  return new WorkloadArrivals(withinClock(requests, given.rateScale), {
    ...given,
    seed,
    timeoutMicros,
    timeScale: 1,
    answers,
  });
}

/** A clock of microseconds has no digits left beyond: it would stand still between two events. */
function* withinClock(requests: Iterable<WorkloadRequest>, rateScale: number): Generator<WorkloadRequest> {
  for (const request of requests) {
    if (request.arrivalMicros / rateScale > Number.MAX_SAFE_INTEGER)
      throw new ConfigError(["--rate: expected one at which all requests come within 285 years"]);
    yield request;
  }
}

/** First turns per second, as recorded. */
function meanRate(requests: readonly WorkloadRequest[]): number {
  const starts = requests.filter(({ thinkMicros }) => thinkMicros === undefined);
  const lastAt = starts.at(-1)?.arrivalMicros ?? 0;
  if (lastAt === 0) throw notSpread();
  return (starts.length * MICROS_PER_SECOND) / lastAt;
}

function notSpread(): ConfigError {
  return new ConfigError(["--rate: expected a workload whose arrivals are spread over time"]);
}

function* first<T>(items: Iterable<T>, count: number | undefined): Generator<T> {
  let left = count ?? Infinity;
  if (left === 0) return;
  for (const item of items) {
    yield item;
    if (--left === 0) return;
  }
}
