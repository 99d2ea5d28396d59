import { existsSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { loadEngine } from "#config/engine-file.ts";
import type { EngineConfig } from "#engine/config.ts";
import { type Calibration, CannotIdentify, calibrate } from "#shadow/calibrate/calibrate.ts";
import { engineText } from "#shadow/calibrate/engine-text.ts";
import { type Evidence, evidenceOf } from "#shadow/calibrate/evidence.ts";
import { type Parameter, PARAMETERS } from "#shadow/calibrate/parameters.ts";
import { recordedSizes } from "#shadow/calibrate/recorded-sizes.ts";
import { type RecordedRun, readRecordedRun } from "#shadow/recorded-run.ts";
import { TraceReader } from "#trace/reader.ts";
import { calibrateTable } from "./calibrate-table.ts";
import { CommandFailure } from "./program.ts";

interface CalibrateFlags {
  readonly output?: string;
  readonly engine?: string;
  readonly endpoint?: readonly string[];
  readonly blockTokens?: number;
  readonly kvBlocks?: number;
  readonly sequencesMax?: number;
  readonly batchTokensMax?: number;
  readonly modelTokensMax?: number;
  readonly asyncScheduling?: boolean;
  readonly fix: Partial<Record<Parameter, number>>;
  readonly train: number;
  readonly json?: string;
}

/** Fits an engine file to recorded traffic and says how far it is to be trusted. */
export function calibrateCommand(): Command {
  return new Command("calibrate")
    .description("Fit an engine's step time to recorded traffic, with its error on requests held out.")
    .argument("<trace>", "folder that --record wrote, or one of its segments")
    .option("-o, --output <file>", "write the engine here, for what-if and simulate (default: standard output)")
    .option("--engine <file>", "engine by name or path whose sizes and scheduling hold where nothing else tells them")
    .option("--endpoint <id...>", "only these endpoints; for fleets of different machines")
    .option("--block-tokens <n>", "tokens per KV block (default: what cached tokens are multiples of)", whole)
    .option("--kv-blocks <n>", "num_gpu_blocks (default: what the endpoints reported)", whole)
    .option("--sequences-max <n>", "max_num_seqs (default: what the endpoints reported, else vLLM's 256)", whole)
    .option("--batch-tokens-max <n>", "max_num_batched_tokens (default: vLLM's 2048)", whole)
    .option("--model-tokens-max <n>", "max_model_len (default: 8192, or what the cache and the prompts allow)", whole)
    .option("--async-scheduling", "the engine composes a step while the one before runs (default on GPUs)")
    .option("--fix <parameter=micros...>", `a parameter known from elsewhere: ${PARAMETERS.join(", ")}`, fixes, {})
    .option("--train <part>", "part of the requests, by arrival, that is fitted; the rest tests the fit", part, 0.7)
    .option("--json <file>", "write parameters and errors as JSON; - for stdout, without the engine and the table")
    .action(run);
}

async function run(path: string, flags: CalibrateFlags): Promise<void> {
  if (!existsSync(path)) throw new ConfigError([`calibrate: expected a trace, got ${path}, which is not there`]);
  const recorded = await readRun(path);
  const { sizes, notes } = sizesOf(recorded, flags);
  const unknown = (flags.endpoint ?? []).filter((id) => !recorded.observed.some(({ endpoint }) => endpoint === id));
  if (unknown.length > 0)
    throw new ConfigError([`--endpoint: expected ones that served requests, got ${unknown.join(", ")}`]);
  const evidence = evidenceOf(recorded, sizes.blockTokens, flags.endpoint);
  for (const [reason, count] of Object.entries(evidence.left))
    process.stderr.write(`note: ${count} left out: ${reason}\n`);
  for (const note of notes) process.stderr.write(`note: ${note}\n`);
  const calibration = fitted(path, evidence, sizes, flags);
  report(path, calibration, evidence, notes, flags);
}

async function readRun(path: string): Promise<RecordedRun> {
  try {
    return await readRecordedRun(new TraceReader(path).items());
  } catch (error) {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
}

function fitted(path: string, evidence: Evidence, sizes: EngineConfig, { fix, train }: CalibrateFlags): Calibration {
  try {
    return calibrate(evidence, { sizes, fixed: fix, trainPart: train });
  } catch (error) {
    if (!(error instanceof CannotIdentify)) throw error;
    throw new CommandFailure([`${path} cannot tell everything:`, ...error.reasons].join("\n  "));
  }
}

function report(
  path: string,
  calibration: Calibration,
  evidence: Evidence,
  notes: readonly string[],
  flags: CalibrateFlags,
): void {
  const text = engineText(calibration, { traces: [basename(path)], requests: evidence.rows.length, notes });
  const { engine: _engine, ...figures } = calibration;
  for (const caveat of calibration.caveats) process.stderr.write(`note: ${caveat}\n`);
  if (flags.json !== undefined) write(flags.json, `${JSON.stringify(figures)}\n`);
  if (flags.output !== undefined) write(flags.output, text);
  else if (flags.json !== "-") process.stdout.write(text);
  const stream =
    flags.output === undefined || flags.output === "-" || flags.json === "-" ? process.stderr : process.stdout;
  stream.write(calibrateTable(calibration));
}

/** What is told on the command line, then by the trace, then by the engine file. */
function sizesOf(recorded: RecordedRun, flags: CalibrateFlags): { sizes: EngineConfig; notes: readonly string[] } {
  const base = loadEngine(flags.engine);
  const { sizes: told, notes } = recordedSizes(recorded, flags.blockTokens);
  const longest = recorded.workload.reduce((most, one) => Math.max(most, one.promptTokens + one.outputTokens), 0);
  const sizes = {
    ...base,
    ...told,
    ...given("kvBlocks", flags.kvBlocks),
    ...given("sequencesMax", flags.sequencesMax),
    ...given("batchTokensMax", flags.batchTokensMax),
    ...given("asyncScheduling", flags.asyncScheduling),
  };
  const room = (sizes.kvBlocks - 1) * sizes.blockTokens;
  const modelTokensMax = flags.modelTokensMax ?? Math.min(room, Math.max(base.modelTokensMax, longest));
  if (modelTokensMax > room || longest > modelTokensMax) {
    throw new ConfigError([
      `--model-tokens-max: expected ${longest} (the longest request) to ${room} (what ${sizes.kvBlocks} KV blocks of ` +
        `${sizes.blockTokens} hold), got ${modelTokensMax}`,
    ]);
  }
  return { sizes: { ...sizes, modelTokensMax }, notes };
}

function given<K extends keyof EngineConfig>(key: K, value: EngineConfig[K] | undefined): Partial<EngineConfig> {
  return value === undefined ? {} : { [key]: value };
}

function write(file: string, text: string): void {
  if (file === "-") process.stdout.write(text);
  else writeFileSync(file, text);
}

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError("expected a whole number of 1 or more");
  return value;
}

function part(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < 1)) throw new InvalidArgumentError("expected a number between 0 and 1");
  return value;
}

function fixes(text: string, before: Partial<Record<Parameter, number>>): Partial<Record<Parameter, number>> {
  const [name = "", value = ""] = text.split("=");
  const parameter = PARAMETERS.find((one) => one === name);
  if (parameter === undefined) throw new InvalidArgumentError(`expected one of ${PARAMETERS.join(", ")}, got ${name}`);
  const micros = Number(value);
  if (value === "" || !(micros >= 0 && Number.isFinite(micros)))
    throw new InvalidArgumentError(`expected ${name}=microseconds of 0 or more, got ${JSON.stringify(text)}`);
  return { ...before, [parameter]: micros };
}
