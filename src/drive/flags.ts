import { Option, type Command } from "commander";
import { addJson, addOutput } from "./output-option.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { ImportError } from "#trace/import/import-report.ts";
import { workloadFile } from "#trace/import/named-workload.ts";
import { headerList, numberIn, positive, urlList, wholeIn } from "./flag-values.ts";
import { COMMON, RARE, rareOption } from "./rare-option.ts";
import { DRIVE_DEFAULTS, type DriveOptions } from "./options.ts";

/** Flags as commander hands them over. */
export interface DriveFlags {
  readonly url?: string[];
  readonly trace?: string;
  readonly sessions?: string;
  readonly spec?: string;
  readonly strict: boolean;
  readonly limit: number;
  readonly seed: number;
  readonly model: string;
  readonly traceModels: boolean;
  readonly api: DriveOptions["api"];
  readonly promptForm: DriveOptions["promptForm"];
  readonly charsPerToken: number;
  readonly vocabularySize: number;
  readonly stream: boolean;
  readonly forceOutput: boolean;
  readonly rateScale: number;
  readonly timeScale: number;
  readonly concurrency: number;
  readonly activeSessions: number;
  readonly sessionRate: number;
  readonly sharedPrefix: number;
  readonly gridMillis: number;
  readonly thinkSecondsMax: number;
  readonly duration: number;
  readonly drainSeconds: number;
  readonly timeoutSeconds: number;
  readonly tokenScale: number;
  readonly maxInputTokens: number;
  readonly oversize: "truncate" | "skip";
  readonly outputScale: number;
  readonly maxOutputTokens: number;
  readonly abortFraction: number;
  readonly sessionHeader: string;
  readonly header: Record<string, string>;
  readonly apiKeyEnv?: string;
  readonly expect: string[];
  readonly json?: string;
  readonly output?: string;
  readonly requestsOut?: string;
}

const D = DRIVE_DEFAULTS;

const NONE = "none";

/** What the help prints for a default that has no number or name of its own. */
function shownOf(value: unknown): string | undefined {
  return value === Number.POSITIVE_INFINITY || (Array.isArray(value) && value.length === 0) ? NONE : undefined;
}

/** Adds every flag of `drive`, with its default and meaning. */
export function addDriveFlags(command: Command): Command {
  addWorkloadFlags(command);
  return addSendingFlags(command);
}

/** What makes an option with a parser, or with choices, of the command. */
function adders(command: Command) {
  const adding =
    (group: string) =>
    (flags: string, text: string, parse: (text: string) => unknown, value?: unknown, shown = shownOf(value)) =>
      command.addOption(new Option(flags, text).argParser(parse).default(value, shown).helpGroup(group));
  const [add, addRare] = [adding(COMMON), adding(RARE)];
  const addChoice = (flags: string, text: string, choices: string[], group = COMMON) =>
    command.addOption(new Option(flags, text).choices(choices).default(choices[0]).helpGroup(group));
  return { add, addRare, addChoice };
}

/** What is sent. */
function addWorkloadFlags(command: Command): void {
  const { add, addRare, addChoice } = adders(command);
  command.option("--url <url>", "gateway or engine; repeat to send to several in turn (required)", urlList);
  command.option("--trace <file>", "recorded workload: Mooncake, Azure, LMCache, token ids (.jsonl, .csv, .gz, .zst)");
  command.option("--sessions <dir>", "folder of recorded sessions: WEKA or LMCache");
  command.option("--spec <file>", "synthetic workload: a YAML specification, or the name of a bundled one");
  command.addOption(rareOption("--strict", "refuse a workload with an unusable record", false));
  add("--limit <n>", "requests at most", wholeIn(1), D.requestsMax);
  addRare("--seed <n>", "of arrivals, prompts and aborts", wholeIn(0), D.seed);
  add("--model <name>", "model to request", String, D.model, "the first of /v1/models");
  command.addOption(
    rareOption("--trace-models", "request the model that the trace names, if it names one", D.traceModels),
  );
  addChoice("--api <name>", "endpoint to call", ["completions", "chat"]);
  addChoice("--prompt-form <form>", "prompts as words or as token ids (completions only)", ["text", "tokens"], RARE);
  addRare("--chars-per-token <x>", "characters per token of synthetic text", positive, D.charsPerToken);
  addRare(
    "--vocabulary-size <n>",
    "upper bound of synthetic token ids",
    wholeIn(2_000, 10_000_000),
    D.vocabularyTokens,
  );
}

/** How and when it is sent, and what becomes of the answers. */
function addSendingFlags(command: Command): Command {
  const { add, addRare, addChoice } = adders(command);
  command.option("--no-stream", "request complete answers instead of streams");
  command.addOption(rareOption("--no-force-output", "do not send vLLM's ignore_eos and min_tokens"));
  add("--rate-scale <x>", "factor on the arrival rate", positive, D.rateScale);
  addRare("--time-scale <x>", "factor on all recorded times, think times included", positive, D.timeScale);
  add("--concurrency <n>", "requests in flight at most", wholeIn(1, 65_536), D.concurrency);
  addRare("--active-sessions <n>", "conversations under way at most", wholeIn(1), D.activeSessionsMax);
  addRare(
    "--session-rate <x>",
    "session starts per second for a trace without times",
    numberIn(0),
    D.import.sessionsPerSecond,
  );
  addRare(
    "--shared-prefix <x>",
    "share of WEKA's tool and system prompts that all sessions have in common",
    numberIn(0, 1),
    0,
  );
  addRare(
    "--grid-millis <n>",
    "spread Mooncake arrivals over cells of this length; 0 to leave them as they are (default: detected)",
    numberIn(0),
  );
  addRare("--think-seconds-max <x>", "cap on think times, before --time-scale", numberIn(0), Number.POSITIVE_INFINITY);
  add("--duration <seconds>", "stop sending after this", positive, D.durationSeconds);
  addRare("--drain-seconds <x>", "time that requests in flight have at the end", numberIn(0), D.drainSeconds);
  addRare("--timeout-seconds <x>", "limit of one request, 0 for none", numberIn(0), D.timeoutSeconds);
  addRare("--token-scale <x>", "factor on prompt lengths and shared blocks", positive, D.fit.tokenScale);
  addRare("--max-input-tokens <n>", "longest prompt", wholeIn(1), D.fit.inputTokensMax);
  addChoice("--oversize <what>", "what to do with longer prompts", ["truncate", "skip"], RARE);
  add("--output-scale <x>", "factor on answer lengths", positive, D.fit.outputScale);
  add("--max-output-tokens <n>", "longest answer", wholeIn(1), D.fit.outputTokensMax);
  addRare(
    "--abort-fraction <x>",
    "share of requests that the driver aborts on purpose",
    numberIn(0, 1),
    D.abortFraction,
  );
  command.addOption(
    rareOption("--session-header <name>", 'header that carries the session, "" for none', D.sessionHeader),
  );
  command.addOption(
    new Option('--header <"name: value">', "sent with every request; repeatable")
      .argParser(headerList)
      .default({}, NONE)
      .helpGroup(RARE),
  );
  command.option("--api-key-env <variable>", "environment variable with the API key");
  addRare("--expect <outcome>", "outcomes that do not fail the run, such as http-429; comma-separated", csv, []);
  addOutput(command, "write the report there as JSON");
  addJson(command, "print the report as JSON; the table then goes to stderr");
  command.addOption(rareOption("--requests-out <file>", "write a JSON line for each request"));
  return command;
}

/** Options from flags, or what is wrong with them together. */
export function driveOptions(
  flags: DriveFlags,
  environment: Readonly<Record<string, string | undefined>>,
): DriveOptions | string {
  const workloads = [flags.trace, flags.sessions, flags.spec].filter((path) => path !== undefined);
  const [given] = workloads;
  if (flags.url === undefined) return "expected --url, the gateway or engine to drive";
  if (given === undefined || workloads.length > 1) return "expected one of --trace, --sessions and --spec";
  if (flags.api === "chat" && flags.promptForm === "tokens") return "--prompt-form tokens needs --api completions";
  const key = flags.apiKeyEnv === undefined ? undefined : environment[flags.apiKeyEnv];
  if (flags.apiKeyEnv !== undefined && (key ?? "") === "") return `--api-key-env: ${flags.apiKeyEnv} is not set`;
  const found = flags.spec === undefined ? { path: given } : specification(flags.spec);
  if ("problem" in found) return found.problem;
  return {
    ...D,
    ...flags,
    urls: flags.url,
    workload: found.path,
    import: {
      ...D.import,
      seed: flags.seed,
      strict: flags.strict,
      gridMillis: flags.gridMillis ?? "auto",
      sessionsPerSecond: flags.sessionRate,
      sharedPrefix: flags.sharedPrefix,
      charsPerToken: flags.charsPerToken,
    },
    fit: {
      tokenScale: flags.tokenScale,
      outputScale: flags.outputScale,
      inputTokensMax: flags.maxInputTokens,
      outputTokensMax: flags.maxOutputTokens,
      oversize: flags.oversize,
      thinkMicrosMax: flags.thinkSecondsMax * MICROS_PER_SECOND,
    },
    vocabularyTokens: flags.vocabularySize,
    requestsMax: flags.limit,
    activeSessionsMax: flags.activeSessions,
    durationSeconds: flags.duration,
    headers: key === undefined ? flags.header : { ...flags.header, authorization: `Bearer ${key}` },
    expected: new Set(flags.expect),
    requestsOut: flags.requestsOut,
  };
}

function specification(nameOrPath: string): { readonly path: string } | { readonly problem: string } {
  try {
    return { path: workloadFile(nameOrPath) };
  } catch (error) {
    if (error instanceof ImportError) return { problem: error.message };
    throw error;
  }
}

function csv(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}
