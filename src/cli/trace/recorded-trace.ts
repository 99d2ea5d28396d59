import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Conversations } from "#shadow/recorded/conversations.ts";
import { type RecordedRun, readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { VLLM_RUN_FILES } from "#trace/import/vllm-run.ts";
import { TraceReader } from "#trace/reader.ts";
import { isTrace } from "#trace/segment-name.ts";
import { Tally } from "#trace/transform/tally.ts";
import { trafficToTrace } from "#trace/transform/traffic-to-trace.ts";
import { importedHeader } from "./imported-header.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { reportNotes } from "./report-notes.ts";
import { openTrace, withPlainErrors } from "./trace-source.ts";

/** A recorded trace as simulations use it, and what of it was not used, by reason. */
export interface RecordedTrace {
  readonly run: RecordedRun;
  readonly notes: readonly string[];
}

/** Whether a path holds requests and their outcomes: a recorded trace, or the folder of a run of vLLM. */
export async function isRecorded(path: string): Promise<boolean> {
  return (await isTrace(path)) || isVllmRun(path);
}

/**
 * Reads a trace, or the folder of a run of vLLM as trace import would write it. Throws CommandFailure or ConfigError with
 * the file and the line of what makes it none.
 */
export async function readRecordedTrace(path: string, conversations?: Conversations): Promise<RecordedTrace> {
  if (isVllmRun(path)) return withPlainErrors(importedRun(path, conversations));
  if (!(await isTrace(path)))
    throw new CommandFailure(
      `${path}: expected a recorded trace, as --record and trace import write it (*.ndjson.zst, or a folder of them), ` +
        `or the folder of a run of vLLM`,
    );
  const reader = new TraceReader(path);
  try {
    const run = await readRecordedRun(reader.items(), conversations);
    return { run, notes: reportNotes(reader.report) };
  } catch (error) {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
}

function isVllmRun(path: string): boolean {
  const { settings, requests } = VLLM_RUN_FILES;
  return existsSync(join(path, settings)) && existsSync(join(path, requests));
}

async function importedRun(path: string, conversations: Conversations | undefined): Promise<RecordedTrace> {
  const source = await openTrace(path, { strict: false, seed: 0 });
  const left = new Tally();
  const header = importedHeader(source, { endpoints: 1, profile: "gnomon" });
  const run = await readRecordedRun(trafficToTrace(source.traffic(), header, left), conversations);
  return {
    run,
    notes: [...left.entries().map(([reason, count]) => `${count} left out: ${reason}`), ...source.notes()],
  };
}
