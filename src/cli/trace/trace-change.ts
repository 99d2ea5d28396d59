import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { Command } from "commander";
import { capRecorded } from "#trace/transform/cap-recorded.ts";
import { TurnCap } from "#trace/transform/cap-workload.ts";
import { mergeWorkloads } from "#trace/transform/merge-workloads.ts";
import { scaleWorkload } from "#trace/transform/scale-workload.ts";
import { type RateCurve, readRateCurve } from "#trace/transform/rate-curve.ts";
import { shapeWorkload } from "#trace/transform/shape-workload.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { type SliceRange, sliceRecorded } from "#trace/transform/slice-recorded.ts";
import { sliceWorkload } from "#trace/transform/slice-workload.ts";
import { Tally } from "#trace/transform/tally.ts";
import { ConfigError } from "#config/config-error.ts";
import { addSourceFlags, atLeastOne, checkOutput, durationFlag, positiveNumber, range } from "./trace-flags.ts";
import { reportWritten, writeTrace, writeWorkload } from "./trace-output.ts";
import { openTrace, requestsOf, type SourceFlags, type TraceSource, withPlainErrors } from "./trace-source.ts";

interface OutputFlags extends SourceFlags {
  readonly output: string;
}

const OUTPUT = "-o, --output <path>";
const OUTPUT_MEANING = "a folder for a recorded trace; for a workload a file named .jsonl, .jsonl.zst or .jsonl.gz";

/** As the `capped` control has it. */
const TURNS_DEFAULT = 8;

/** Requirements: the `capped` control. */
export function capCommand(): Command {
  const command = new Command("cap")
    .description("Keep the first turns of each conversation.")
    .argument("<trace>", "recorded trace or workload")
    .option("--max-turns <n>", "turns to keep", atLeastOne, TURNS_DEFAULT)
    .requiredOption(OUTPUT, OUTPUT_MEANING)
    .action((path: string, flags: OutputFlags & { readonly maxTurns: number }) => withPlainErrors(cap(path, flags)));
  return addSourceFlags(command);
}

export function sliceCommand(): Command {
  const command = new Command("slice")
    .description("Keep the requests that arrived in a range of time or numbers, each with all its inputs.")
    .argument("<trace>", "recorded trace or workload")
    .option("--from <time>", "start of the range, from the trace's start: 90s, 250ms, 2m, 1h", durationFlag)
    .option("--to <time>", "end of the range, not included", durationFlag)
    .option("--requests <from:to>", "by number from 0, the end not included: 100:200, 100: or :200", range)
    .requiredOption(OUTPUT, OUTPUT_MEANING)
    .action((path: string, flags: SliceFlags) => withPlainErrors(slice(path, flags)));
  return addSourceFlags(command);
}

interface SliceFlags extends OutputFlags {
  readonly from?: number;
  readonly to?: number;
  readonly requests?: { readonly from: number; readonly to: number };
}

export function scaleCommand(): Command {
  const command = new Command("scale")
    .description("Make factor on the arrival rate. What was observed at the old rate is left out: a workload.")
    .argument("<trace>", "recorded trace or workload")
    .requiredOption("--rate <x>", "factor on the arrival rate; think times stay as they are", positiveNumber)
    .requiredOption(OUTPUT, "a file named .jsonl, .jsonl.zst or .jsonl.gz")
    .action((path: string, flags: OutputFlags & { readonly rate: number }) => withPlainErrors(scale(path, flags)));
  return addSourceFlags(command);
}

export function shapeCommand(): Command {
  const command = new Command("shape")
    .description(
      "Repeat a workload along a curve of arrival rates, for example to make a day out of an hour. Writes a workload.",
    )
    .argument("<trace>", "recorded trace or workload")
    .requiredOption(
      "--curve <file>",
      "rows `seconds,rate`: the rate from that time on, in any unit; the first row is at 0, and the last lasts as long as the one before",
    )
    .option("--rate <x>", "arrivals per second, the mean over the curve (default: the workload's own)", positiveNumber)
    .option("--shared-content", "treat equal block ids of different rounds as equal prompts", false)
    .requiredOption(OUTPUT, "a file named .jsonl, .jsonl.zst or .jsonl.gz")
    .action((path: string, flags: ShapeFlags) => withPlainErrors(shape(path, flags)));
  return addSourceFlags(command);
}

interface ShapeFlags extends OutputFlags {
  readonly curve: string;
  readonly rate?: number;
  readonly sharedContent: boolean;
}

export function mergeCommand(): Command {
  const command = new Command("merge")
    .description("Overlay several traces, each from its own start. Writes a workload, without what was observed.")
    .argument("<traces...>", "recorded traces or workloads")
    .option("--shared-content", "treat equal block ids of different traces as equal prompts", false)
    .requiredOption(OUTPUT, "a file named .jsonl, .jsonl.zst or .jsonl.gz")
    .action((paths: string[], flags: OutputFlags & { readonly sharedContent: boolean }) =>
      withPlainErrors(merge(paths, flags)),
    );
  return addSourceFlags(command);
}

async function cap(path: string, flags: OutputFlags & { readonly maxTurns: number }): Promise<void> {
  const { maxTurns, output } = flags;
  const left = new Tally();
  const source = await openTrace(path, flags);
  checkOutput(output, source.reader === undefined ? "workload" : "new");
  if (source.reader !== undefined) {
    const written = await writeTrace(output, capRecorded(source.reader.items(), maxTurns, left));
    return report(written.records, `records in ${written.runs} runs`, output, [source], left);
  }
  const turns = new TurnCap(maxTurns);
  for await (const request of requestsOf(source)) turns.add(request);
  const again = await openTrace(path, flags);
  const written = await writeWorkload(output, turns.cap(requestsOf(again), left), [`cap --max-turns ${maxTurns}`]);
  report(written, "requests", output, [source], left);
}

async function slice(path: string, flags: SliceFlags): Promise<void> {
  const { from, to, requests, output } = flags;
  if (from === undefined && to === undefined && requests === undefined)
    throw new ConfigError(["slice: expected --from, --to or --requests, got none of them"]);
  const wanted: SliceRange = {
    fromMicros: from ?? 0,
    toMicros: to ?? Number.MAX_SAFE_INTEGER,
    fromRequest: requests?.from ?? 0,
    toRequest: requests?.to ?? Number.MAX_SAFE_INTEGER,
  };
  const left = new Tally();
  const source = await openTrace(path, flags);
  checkOutput(output, source.reader === undefined ? "workload" : "new");
  if (source.reader !== undefined) {
    const written = await writeTrace(output, sliceRecorded(source.reader.items(), wanted, left));
    return report(written.records, `records in ${written.runs} runs`, output, [source], left);
  }
  const step = `slice, microseconds ${wanted.fromMicros} to ${wanted.toMicros}, requests ${wanted.fromRequest} to ${wanted.toRequest}`;
  const written = await writeWorkload(output, sliceWorkload(requestsOf(source), wanted, left), [step]);
  report(written, "requests", output, [source], left);
}

async function scale(path: string, flags: OutputFlags & { readonly rate: number }): Promise<void> {
  checkOutput(flags.output, "workload");
  const source = await openTrace(path, flags);
  const step = `scale --rate ${flags.rate}`;
  const written = await writeWorkload(flags.output, scaleWorkload(requestsOf(source), flags.rate), [step]);
  report(written, "requests", flags.output, [source], new Tally());
}

async function shape(path: string, flags: ShapeFlags): Promise<void> {
  const { output, rate, sharedContent } = flags;
  checkOutput(output, "workload");
  const curve = readCurve(flags.curve);
  const source = await openTrace(path, flags);
  const read = async (): Promise<AsyncGenerator<WorkloadRequest>> => requestsOf(await openTrace(path, flags));
  const step = `shape --curve ${basename(flags.curve)}${rate === undefined ? "" : ` --rate ${rate}`}`;
  const shaped = shapeWorkload(read, { curve, requestsPerSecond: rate, sharedContent });
  const written = await writeWorkload(output, shaped, [step]);
  report(written, "requests", output, [source], new Tally());
}

function readCurve(file: string): RateCurve {
  try {
    return readRateCurve(readFileSync(file, "utf8"));
  } catch (error) {
    throw new ConfigError([`--curve: ${file}: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

async function merge(
  paths: readonly string[],
  flags: OutputFlags & { readonly sharedContent: boolean },
): Promise<void> {
  checkOutput(flags.output, "workload");
  const sources: TraceSource[] = [];
  for (const path of paths) sources.push(await openTrace(path, flags));
  const merged = mergeWorkloads(sources.map(requestsOf), { sharedContent: flags.sharedContent });
  const written = await writeWorkload(flags.output, merged, [`merge of ${paths.length}`]);
  report(written, "requests", flags.output, sources, new Tally());
}

function report(count: number, what: string, output: string, sources: readonly TraceSource[], left: Tally): void {
  const notes = sources.flatMap((source) => source.notes().map((note) => `${source.path}: ${note}`));
  reportWritten(output, count, what, left, notes);
}
