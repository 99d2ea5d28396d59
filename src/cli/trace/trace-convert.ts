import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { Readable } from "node:stream";
import { Command, Option } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { azureLine } from "#trace/export/azure-line.ts";
import { blisResult } from "#trace/export/blis-result.ts";
import { BLIS_CSV_HEADER, blisHeader, blisRow } from "#trace/export/blis-trace.ts";
import { mooncakeLine } from "#trace/export/mooncake-line.ts";
import { LMCACHE_LOSSES, lmcacheLines } from "#trace/export/lmcache-lines.ts";
import { WEKA_LOSSES, writeWekaFolder } from "#trace/export/weka-folder.ts";
import { AZURE_HEADER } from "#trace/import/azure.ts";
import { RESULTS_ALONE } from "#trace/import/open-workload.ts";
import { answersApart, apartNote } from "#trace/transform/answers-apart.ts";
import { Tally } from "#trace/transform/tally.ts";
import type { TrafficRequest } from "#trace/transform/traffic.ts";
import { trafficToTrace } from "#trace/transform/traffic-to-trace.ts";
import { importedHeader } from "./imported-header.ts";
import { addSourceFlags, atLeastOne, checkOutput } from "./trace-flags.ts";
import {
  type LineFormat,
  reportWritten,
  WORKLOAD_NAME,
  writeLines,
  writeTrace,
  writeWorkload,
} from "./trace-output.ts";
import { openTrace, requestsOf, type SourceFlags, type TraceSource, withPlainErrors } from "./trace-source.ts";
import { writeWholeFile } from "#trace/export/whole-file.ts";

const EXPORT_FORMATS = ["mooncake", "azure", "blis", "blis-result", "weka", "lmcache", "workload"] as const;
type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Azure's file has wall times; a workload has none, so it gets the start of an epoch. */
const AZURE_START_MICROS = 946_684_800_000_000;

interface ImportFlags extends SourceFlags {
  readonly output: string;
  readonly endpoints: number;
  readonly profile: string;
  readonly router?: string;
  readonly key?: string;
  readonly arrivals?: string;
}

interface ExportFlags extends SourceFlags {
  readonly output: string;
  readonly format: ExportFormat;
}

export function importCommand(): Command {
  const command = new Command("import")
    .description(
      "Convert a workload of another tool: to a .jsonl of what was sent or, if it holds outcomes (runs of vLLM, BLIS), to a recorded trace in a folder.",
    )
    .argument(
      "<workload>",
      "run of vLLM, access log of nginx, Envoy or llm-d, Mooncake, Bailian, Azure, WEKA, LMCache, ShareGPT, token ids, BLIS TraceV2 or SimResults, or a specification",
    )
    .requiredOption("-o, --output <path>", "a file named .jsonl, .jsonl.zst or .jsonl.gz; or a folder")
    .option("--endpoints <n>", "for a recorded trace: number of endpoints that served it", atLeastOne, 1)
    .option("--profile <name>", "for a recorded trace: profile that routed it", "gnomon")
    .option("--router <name>", "for a router's log: whose decisions these are (default: the format's name)")
    .option("--arrivals <file>", "the replayed TraceV2, needed for BLIS's SimResults, which hold no arrivals")
    .option("--key <text>", "key for the block ids of a run's prompts (default: another one each time)")
    .action((path: string, flags: ImportFlags) => withPlainErrors(importTrace(path, flags)));
  return addSourceFlags(command);
}

export function exportCommand(): Command {
  const command = new Command("export")
    .description("Write a trace in another format, and report what that format cannot hold.")
    .argument("<trace>", "recorded trace or workload")
    .addOption(
      new Option(
        "-f, --format <name>",
        "output format; blis is a TraceV2 (a .csv, with its header in a .yaml beside it), weka a folder",
      )
        .choices(EXPORT_FORMATS)
        .makeOptionMandatory(),
    )
    .requiredOption("-o, --output <file>", "compressed when it ends with .zst or .gz")
    .action((path: string, flags: ExportFlags) => withPlainErrors(exportTrace(path, flags)));
  return addSourceFlags(command);
}

async function importTrace(path: string, flags: ImportFlags): Promise<void> {
  const source = await openTrace(path, { ...flags, key: flags.key ?? randomUUID() });
  checkOutput(flags.output, "new");
  if (source.reader !== undefined)
    throw new ConfigError([`import: expected a foreign workload, got the recorded trace ${path}`]);
  if (source.format === "blis-result" && flags.arrivals === undefined)
    throw new ConfigError([`import: ${path}: ${RESULTS_ALONE}`]);
  if (source.format !== "blis-result" && flags.arrivals !== undefined)
    throw new ConfigError([
      `--arrivals: expected with BLIS's SimResults alone, got ${path}, which is ${source.format}`,
    ]);
  if (flags.arrivals !== undefined && !existsSync(flags.arrivals))
    throw new ConfigError([`--arrivals: expected a TraceV2, got ${flags.arrivals}, which is not there`]);
  if (WORKLOAD_NAME.test(flags.output)) {
    const written = await writeWorkload(flags.output, requestsOf(source), [`import of ${source.format}`]);
    return reportWritten(flags.output, written, "requests", new Tally(), source.notes());
  }
  const left = new Tally();
  const traffic = await withObservations(source, flags.output);
  const written = await writeTrace(flags.output, trafficToTrace(traffic, importedHeader(source, flags), left));
  const settings = Object.entries(source.run?.engine ?? {}).map(([name, value]) => `${name} ${value}`);
  const engine = settings.length === 0 ? [] : [`engine: ${settings.join(", ")}`];
  const routed = source.routed === undefined ? [] : [LOG_LIMITS];
  reportWritten(flags.output, written.records, "records", left, [...engine, ...routed, ...source.notes()]);
}

/** What a trace of a log can answer. */
const LOG_LIMITS =
  "a log has no prompts: reproduce can name policies by load, turn and session, and none by what prompts share";

/** The traffic, if its first request holds its outcome. */
async function withObservations(source: TraceSource, output: string): Promise<AsyncGenerator<TrafficRequest>> {
  const traffic = source.traffic();
  const first = await traffic.next();
  if (first.done === true || first.value.observed === undefined)
    throw new ConfigError([
      `--output: expected a name that ends with .jsonl, since ${source.path} does not hold the outcomes of its requests, got ${output}`,
    ]);
  return rest(first.value, traffic);
}

async function* rest(first: TrafficRequest, others: AsyncIterable<TrafficRequest>): AsyncGenerator<TrafficRequest> {
  yield first;
  yield* others;
}

async function exportTrace(path: string, flags: ExportFlags): Promise<void> {
  const { format, output } = flags;
  checkOutput(output, format === "workload" ? "workload" : "new");
  if (format === "blis" && !/\.csv(\.zst|\.gz)?$/.test(output))
    throw new ConfigError([`--output: expected a name that ends with .csv, got ${output}`]);
  const source = await openTrace(path, flags);
  if (format === "workload") {
    const written = await writeWorkload(output, requestsOf(source), [`export of ${source.format}`]);
    return reportWritten(output, written, "requests", new Tally(), source.notes());
  }
  const counts = { apart: 0 };
  const traffic = answersApart(source.traffic(), counts);
  const notes = (): string[] => {
    const note = apartNote(counts);
    return note === undefined ? [...source.notes()] : [...source.notes(), note];
  };
  if (format === "weka") {
    const { written, refused } = await writeWekaFolder(output, traffic);
    return reportWritten(output, written, "requests", refused, [...notes(), WEKA_LOSSES]);
  }
  if (format === "lmcache") {
    const lines = await lmcacheLines(requestsOf({ traffic: () => traffic }));
    const each = { head: "", between: "", tail: "", line: (line: string) => line };
    const { written, refused } = await writeLines(output, Readable.from(lines), each);
    return reportWritten(output, written, "requests", refused, [...notes(), LMCACHE_LOSSES]);
  }
  const { written, refused } = await writeLines(output, traffic, formatOf(format));
  if (format === "blis" && written > 0)
    writeWholeFile(
      output.replace(/\.csv(\.zst|\.gz)?$/, ".yaml"),
      blisHeader(source.reader === undefined ? "generated" : "real"),
    );
  reportWritten(output, written, "requests", refused, notes());
  if (format === "blis")
    process.stdout.write("blocks that prompts share are not written: the format has no place for them\n");
}

function formatOf(format: Exclude<ExportFormat, "workload" | "weka" | "lmcache">): LineFormat<TrafficRequest> {
  const plain = { head: "", between: "", tail: "" };
  switch (format) {
    case "mooncake":
      return { ...plain, line: ({ request }) => mooncakeLine(request) };
    case "azure":
      return { ...plain, head: `${AZURE_HEADER}\n`, line: ({ request }) => azureLine(request, AZURE_START_MICROS) };
    case "blis":
      return { ...plain, head: BLIS_CSV_HEADER, line: blisRow };
    case "blis-result":
      return { head: "[", between: ",\n", tail: "]\n", line: blisResult };
  }
}
