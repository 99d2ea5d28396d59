import { monitorEventLoopDelay } from "node:perf_hooks";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { WorkloadFit } from "#trace/import/fit-workload.ts";
import type { ImportReport } from "#trace/import/import-report.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { isFailure } from "./exchange-result.ts";
import { imbalanceOf } from "./imbalance.ts";
import { measured } from "./measured.ts";
import type { DriveOptions } from "./options.ts";
import type { DriveReport } from "./report.ts";
import { DriveRun } from "./run.ts";
import { DriveTarget } from "./target.ts";

/** A driver whose late sends reach this is not driving the workload it was asked for. */
const BEHIND_MILLIS_P99 = 100;
const NANOS_PER_MILLI = 1_000_000;
/** Sampling period of the event loop, which its measured delay includes. */
const LOOP_SAMPLE_MILLIS = 5;

export interface Progress {
  readonly elapsedMicros: Micros;
  readonly sent: number;
  readonly ended: number;
  readonly inFlight: number;
  readonly failed: number;
}

/** What may be done to a run from outside. */
export interface DriveControl {
  /** Sends nothing more, and lets what is in flight end within the drain time. */
  stop(): void;
  /** Closes what is in flight. */
  cancel(): void;
  progress(): Progress;
}

/** The targets cannot be used at all: no model, a file that cannot be written. */
export class DriveError extends Error {
  override readonly name = "DriveError";
}

/**
 * Sends a workload and measures the answers. Throws ImportError for a workload that cannot be read and DriveError when
 * there is nothing to send to; failed requests are figures of the report.
 */
export async function drive(options: DriveOptions, onStart?: (control: DriveControl) => void): Promise<DriveReport> {
  const workload = await openWorkload(options.workload, { ...options.import, seed: options.seed });
  const targets = options.urls.map((url) => new DriveTarget(url, options.concurrency));
  const delay = monitorEventLoopDelay({ resolution: LOOP_SAMPLE_MILLIS });
  try {
    const model = options.model === "" ? await discoverModel(targets, options.headers) : options.model;
    const fit = new WorkloadFit(options.fit);
    const run = new DriveRun(options, targets, model);
    let interrupted = false;
    onStart?.({
      stop: () => ((interrupted = true), run.stop()),
      cancel: () => ((interrupted = true), run.cancel()),
      progress: () => ({
        elapsedMicros: run.now(),
        sent: run.sent,
        ended: run.samples.size,
        inFlight: run.inFlight,
        failed: run.failed,
      }),
    });
    delay.enable();
    const cpu = process.cpuUsage();
    await run.all(workload.requests, fit);
    const used = process.cpuUsage(cpu);
    const cpuSeconds = (used.user + used.system) / MICROS_PER_SECOND;
    const driver = {
      cpuSeconds,
      cpuMicrosPerRequest: run.sent === 0 ? 0 : (cpuSeconds * MICROS_PER_SECOND) / run.sent,
      eventLoopDelayMillisP99: Math.max(0, delay.percentile(99) / NANOS_PER_MILLI - LOOP_SAMPLE_MILLIS),
      samplesDropped: run.samples.dropped,
    };
    return reportOf({ options, model, run, fit, read: workload.report, interrupted, driver });
  } finally {
    delay.disable();
    await Promise.all(targets.map((target) => target.close()));
  }
}

async function discoverModel(
  targets: readonly DriveTarget[],
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const [target] = targets;
  if (target === undefined) throw new DriveError("expected at least one URL");
  const found = await target.firstModel(Object.entries(headers).flat());
  if ("model" in found) return found.model;
  throw new DriveError(`no model to ask for: ${found.reason} (${target.url}); name one with --model`);
}

interface Driven extends Pick<DriveReport, "model" | "interrupted" | "driver"> {
  readonly options: DriveOptions;
  readonly run: DriveRun;
  readonly fit: WorkloadFit;
  readonly read: ImportReport;
}

function reportOf({ options, model, run, fit, read, interrupted, driver }: Driven): DriveReport {
  const { driftMillis, ...figures } = measured(run.samples);
  const { outcomes } = run.samples;
  const failures = outcomes.filter(isFailure);
  const expectedFailures = failures.filter((outcome) => options.expected.has(outcome)).length;
  const count = (outcome: string) => figures.outcomes[outcome] ?? 0;
  return {
    urls: options.urls,
    model,
    api: options.api,
    stream: options.stream,
    seed: options.seed,
    workload: {
      path: read.path,
      format: read.format,
      records: read.records,
      refused: Object.fromEntries(read.refused),
      adjusted: Object.fromEntries(read.adjusted),
      refusedPlaces: read.places,
      promptsTruncated: fit.promptsTruncated,
      promptsSkipped: fit.promptsSkipped,
      outputsCut: fit.outputsCut,
      thinkTimesCut: fit.thinkTimesCut,
    },
    interrupted,
    requests: {
      sent: run.sent,
      ok: count("ok"),
      failed: failures.length - expectedFailures,
      expectedFailures,
      aborted: count("aborted"),
      cancelled: count("cancelled"),
      notSent: run.notSent,
    },
    failureMessages: Object.fromEntries(run.failureMessages),
    ...figures,
    imbalance: imbalanceOf(run.samples.spans),
    drift: {
      millis: driftMillis,
      heldByConcurrency: run.heldByConcurrency,
      sessionsHeld: run.sessionsHeld,
      behind: (driftMillis.p99 ?? 0) > BEHIND_MILLIS_P99,
    },
    driver,
  };
}
