import { rareOption } from "#drive/rare-option.ts";
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { addJson, addOutput } from "#drive/output-option.ts";
import { ConfigError } from "#config/config-error.ts";
import { loadCalibratedEngine, loadEngine } from "#config/engine-file.ts";
import type { EngineConfig } from "#engine/config.ts";
import { HARDWARE } from "#engine/hardware.ts";
import type { SourceRun } from "#engine/engine-source.ts";
import { BETWEEN_RUNS_PARTS, BETWEEN_RUNS_STATED, type BetweenRunsPart } from "#shadow/recorded/between-runs.ts";
import { type Calibration, CannotIdentify, calibrateInSteps } from "#shadow/calibrate/calibrate.ts";
import { engineText } from "#shadow/calibrate/engine-text.ts";
import { type Evidence, evidenceOf } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import { calibrateUnstated } from "#shadow/calibrate/found-scheduling.ts";
import { joinedRuns } from "#shadow/calibrate/joined-runs.ts";
import { modelErrorOf } from "#shadow/calibrate/model-error.ts";
import { type Parameter, PARAMETERS } from "#shadow/calibrate/parameters.ts";
import { betweenWords, residualsFor, sourceRunOf } from "#shadow/recorded/engine-origin.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { calibrateTable, evaluationTable } from "./calibrate-table.ts";
import { addCacheFlags, doLongWork, type LongWork, type LongWorkFlags } from "../long-work/long-work.ts";
import { names } from "../flag/list-flag.ts";
import { calibrateKernels, type KernelFlags } from "./calibrate-kernels.ts";
import { calibratePoints, type PointFlags } from "./calibrate-points.ts";
import { addSizeFlags, sizedEngine } from "./engine-sizes.ts";
import { checkOutputFile } from "../output/check-output-file.ts";
import { loadOnly } from "./load-only.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { kernelForms } from "./kernel-tables/kernel-tables.ts";
import { readRecordedTrace } from "../trace/recorded-trace.ts";
import { writeOutput } from "#drive/output-file.ts";

interface CalibrateFlags extends PointFlags, KernelFlags, LongWorkFlags {
  readonly endpoint?: readonly string[];
  readonly fix: Partial<Record<Parameter, number>>;
  readonly train: number;
  readonly betweenRuns: Partial<Record<BetweenRunsPart, number>>;
  readonly evaluate: boolean;
}

const LIVE_SECONDS = 300;

/** Fits an engine file to recorded traffic and reports how far it is to be trusted. */
export function calibrateCommand(): Command {
  const command = new Command("calibrate")
    .description("Fit an engine's step times to recorded traffic, and state the error on requests held out of the fit.")
    .argument(
      "[trace...]",
      "folder that --record or trace import wrote, one of its segments, or the folder of a run of vLLM; " +
        "several runs of the same engine show how much one differs from another",
    )
    .option(
      "--engine <file>",
      "engine, by name or path, whose sizes and scheduling apply where nothing else states them",
    )
    .option(
      "--from-bench <file>",
      "in place of a trace: a result of vllm bench serve --max-concurrency N --save-result, or a list of them; " +
        "repeat for more, with two prompt lengths and two numbers of users at least",
      names,
    )
    .option(
      "--from-kernels <folder>",
      `in place of a trace: measured kernels, with --model-config and --hardware; repeat for more folders: ${kernelForms()}`,
      names,
    )
    .option("--model-config <file>", "with --from-kernels: the model's config.json")
    .option("--hardware <board>", `with --from-kernels: ${Object.keys(HARDWARE).join(", ")}`)
    .option("--tp <count>", "with --from-kernels: boards that an engine uses", boards, 1)
    .option(
      "--live <url>",
      "in place of a trace: measure this running, otherwise idle engine, with eight short loads, each four times, and more often where its speed wanders",
    )
    .option(
      "--live-seconds <n>",
      "how long that may take at most; with less time than four rounds take, fewer of them",
      seconds,
      LIVE_SECONDS,
    )
    .option("--api-key-env <variable>", "with --live: environment variable with the engine's API key")
    .option("--endpoint <id>", "fit only this endpoint, for fleets of different machines; repeat for more", names)
    .addOption(
      rareOption(
        "--fix <parameter=micros>",
        `a parameter known from elsewhere: ${PARAMETERS.join(", ")}; repeat for more`,
        each(fix),
        {},
      ),
    )
    .addOption(
      rareOption(
        "--train <part>",
        "share of the requests, by arrival, that is fitted; the fit is tested on the rest",
        part,
        0.7,
      ),
    )
    .addOption(
      rareOption(
        "--between-runs <part=share>",
        `how far another run is assumed to differ, as a share, where one trace cannot show it: ${statedWords()}; repeat for more`,
        each(spread),
        {},
      ),
    )
    .option("--evaluate", "fit nothing; report how far --engine is from what happened in this trace", false)
    .action(run);
  addOutput(command, "write the engine there, for what-if and simulate (default: standard output)");
  addJson(command, "print parameters and errors as JSON, without the engine and the table");
  return addCacheFlags(addSizeFlags(command));
}

async function run(given: readonly string[], flags: CalibrateFlags): Promise<void> {
  const [first, ...others] = given;
  const ways = [first, flags.fromBench, flags.fromKernels, flags.live].filter((way) => way !== undefined).length;
  if (ways !== 1)
    throw new ConfigError([`calibrate: expected one of a trace, --from-bench, --from-kernels and --live, got ${ways}`]);
  if (first === undefined) {
    if (flags.evaluate) throw new ConfigError(["--evaluate: expected a trace, got none"]);
    checkOutputFile("--output", flags.output);
    checkOutputFile("--json", flags.json);
    if (flags.fromKernels === undefined) return calibratePoints(flags);
    return calibrateKernels(flags.fromKernels, flags);
  }
  const paths = [first, ...others] as const;
  const absent = paths.filter((path) => !existsSync(path));
  if (absent.length > 0)
    throw new ConfigError(absent.map((path) => `calibrate: expected a trace, got ${path}, which is not there`));
  if (flags.evaluate && (flags.engine === undefined || flags.output !== undefined))
    throw new ConfigError(["--evaluate: expected --engine and no --output, since nothing is fitted"]);
  if (flags.evaluate && paths.length > 1)
    throw new ConfigError([`--evaluate: expected one trace, got ${paths.length}: their errors are apart`]);
  checkOutputFile("--output", flags.output);
  checkOutputFile("--json", flags.json);
  if (flags.evaluate) return evaluated(await openedRun(paths[0], flags), flags);
  const { runs, evidence, calibration } = await doLongWork(flags, async (work) => {
    const runs: OpenedRun[] = [];
    for (const path of paths) runs.push(await openedRun(path, flags));
    const [first] = runs as [OpenedRun, ...OpenedRun[]];
    for (const { path, sizes } of runs) refuseOtherSizes(path, sizes, first);
    for (const [at, one] of runs.entries()) refuseSame(one, runs.slice(0, at));
    const evidence = joinedRuns(runs.map((one) => one.evidence) as [Evidence, ...Evidence[]]);
    const isStated = flags.engine !== undefined || runs.some(({ statesScheduling }) => statesScheduling);
    const calibration = await fitted(paths.join(" and "), evidence, first.sizes, isStated, flags, work);
    return { runs, evidence, calibration };
  });
  report(paths, runs, calibration, evidence, flags);
}

/** One run's trace, and the notes on it. */
interface OpenedRun {
  readonly path: string;
  readonly evidence: Evidence;
  readonly sizes: EngineConfig;
  readonly notes: readonly string[];
  readonly statesScheduling: boolean;
  readonly load: Readonly<Record<string, number>>;
  readonly source: SourceRun;
  readonly header: TraceHeader;
}

async function openedRun(path: string, flags: CalibrateFlags): Promise<OpenedRun> {
  const { run: recorded, notes: damage } = await readRecordedTrace(path);
  const sized = sizedEngine(loadEngine(flags.engine), recorded, flags, !flags.evaluate);
  const { engine: sizes, notes: sizing, statesScheduling } = sized;
  const notes = [...damage, ...sizing];
  const unknown = (flags.endpoint ?? []).filter((id) => !recorded.observed.some(({ endpoint }) => endpoint === id));
  if (unknown.length > 0)
    throw new ConfigError([`--endpoint: expected ones that served requests, got ${unknown.join(", ")}`]);
  const evidence = evidenceOf(recorded, sizes.blockTokens, flags.endpoint);
  for (const [reason, count] of Object.entries(evidence.left))
    process.stderr.write(`note: ${count} left out: ${reason}\n`);
  const load = loadOnly(recorded.observed);
  for (const [reason, count] of Object.entries(load)) process.stderr.write(`note: ${count} load only: ${reason}\n`);
  for (const note of notes) process.stderr.write(`note: ${note}\n`);
  if (evidence.rows.length > 0 && evidence.rows.every(({ cachedTokens }) => Number.isNaN(cachedTokens)))
    process.stderr.write(
      "note: the trace does not show what was cached: the simulated engine's own hits stand for it\n",
    );
  return {
    path,
    evidence,
    sizes,
    notes,
    statesScheduling,
    load,
    source: sourceRunOf(recorded.header),
    header: recorded.header,
  };
}

/** Runs of one engine have its sizes; one that is longer in the longest prompt alone is the same. */
function refuseOtherSizes(path: string, sizes: EngineConfig, first: OpenedRun): void {
  const differing = (
    ["blockTokens", "kvBlocks", "sequencesMax", "batchTokensMax", "asyncScheduling", "dataParallel"] as const
  ).filter((size) => sizes[size] !== first.sizes[size]);
  if (differing.length === 0) return;
  const words = differing.map((size) => `${size} ${sizes[size]} and not ${first.sizes[size]}`).join(", ");
  throw new ConfigError([`${path}: expected a run of the same engine as ${first.path}, got ${words}`]);
}

/** A run is no second one beside itself: it differs by nothing, and so would runs seem to. */
function refuseSame({ path, evidence: { rows } }: OpenedRun, before: readonly OpenedRun[]): void {
  const same = before.find(
    ({ evidence }) =>
      rows.length > 0 &&
      evidence.rows.length === rows.length &&
      evidence.rows.every(({ ttftMicros, e2eMicros }, i) =>
        [ttftMicros - rows[i]!.ttftMicros, e2eMicros - rows[i]!.e2eMicros].every((apart) => !(Math.abs(apart) > 0)),
      ),
  );
  if (same !== undefined) throw new ConfigError([`${path}: expected another run than ${same.path}, got the same one`]);
}

/** How far the engine is from what happened, request by request where and when the real ones had them. */
function evaluated({ path, evidence, sizes: engine, header }: OpenedRun, { engine: name, json }: CalibrateFlags): void {
  const { residuals, source } = loadCalibratedEngine(name!);
  for (const note of residualsFor(residuals, source, header).notes) process.stderr.write(`note: ${note}\n`);
  const outcome = forcedReplay(evidence, engine);
  const error = modelErrorOf(evidence, outcome, () => true);
  if (error.requests === 0) throw new CommandFailure(`${path} has no request whose times can be compared`);
  const byEndpoint = Object.fromEntries(
    evidence.endpoints.map((endpoint, number) => [
      endpoint,
      modelErrorOf(evidence, outcome, (row) => evidence.rows[row]!.endpoint === number),
    ]),
  );
  if (json !== undefined) writeOutput(json, `${JSON.stringify({ error, byEndpoint, left: evidence.left })}\n`);
  if (json !== "-") process.stdout.write(evaluationTable(error, byEndpoint));
}

const REPLAYS = "replays of the trace";

async function fitted(
  path: string,
  evidence: Evidence,
  sizes: EngineConfig,
  isStated: boolean,
  { fix, train, betweenRuns: stated }: CalibrateFlags,
  { memory, inTurns }: LongWork,
): Promise<Calibration> {
  try {
    const betweenRuns = { ...BETWEEN_RUNS_STATED, ...stated };
    const options = { sizes, fixed: fix, trainPart: train, betweenRuns, memory };
    if (isStated) return await inTurns(calibrateInSteps(evidence, options), REPLAYS);
    const { calibration, note } = await inTurns(calibrateUnstated(evidence, options), REPLAYS);
    return { ...calibration, caveats: [note, ...calibration.caveats] };
  } catch (error) {
    if (!(error instanceof CannotIdentify)) throw error;
    throw new CommandFailure([`${path} does not identify every parameter:`, ...error.reasons].join("\n  "));
  }
}

function report(
  paths: readonly string[],
  runs: readonly OpenedRun[],
  calibration: Calibration,
  evidence: Evidence,
  flags: CalibrateFlags,
): void {
  const text = engineText(calibration, {
    traces: paths.map((path) => basename(path)),
    requests: evidence.rows.length,
    source: { runs: runs.map(({ source }) => source) },
    notes: [...new Set(runs.flatMap(({ notes }) => notes))],
  });
  const load: Record<string, number> = {};
  for (const [reason, count] of runs.flatMap((one) => Object.entries(one.load)))
    load[reason] = (load[reason] ?? 0) + count;
  const { betweenRuns } = calibration.residuals ?? {};
  if (betweenRuns !== undefined) process.stderr.write(`note: another run: ${betweenWords(betweenRuns)}\n`);
  const { engine: _engine, ...figures } = calibration;
  for (const caveat of calibration.caveats) process.stderr.write(`note: ${caveat}\n`);
  if (flags.json !== undefined)
    writeOutput(flags.json, `${JSON.stringify({ ...figures, left: evidence.left, loadOnly: load })}\n`);
  if (flags.output !== undefined) writeOutput(flags.output, text);
  else if (flags.json !== "-") process.stdout.write(text);
  const stream =
    flags.output === undefined || flags.output === "-" || flags.json === "-" ? process.stderr : process.stdout;
  stream.write(calibrateTable(calibration));
  if (flags.output !== undefined && flags.output !== "-") {
    const next = `gnomon what-if ${paths[0]} --engine ${flags.output} --profile NAME`;
    process.stderr.write(`wrote ${flags.output}; next: ${next}\n`);
  }
}

function boards(text: string): number {
  const value = Number(text);
  if (!(Number.isSafeInteger(value) && value >= 1 && value <= 1024))
    throw new InvalidArgumentError("expected a whole number of 1 to 1024");
  return value;
}

function seconds(text: string): number {
  const value = Number(text);
  if (!(value >= 1 && value <= 86_400)) throw new InvalidArgumentError("expected seconds, 1 to 86400");
  return value;
}

function part(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < 1)) throw new InvalidArgumentError("expected a number between 0 and 1");
  return value;
}

function statedWords(): string {
  return BETWEEN_RUNS_PARTS.map((part) => `${part} ${BETWEEN_RUNS_STATED[part]}`).join(", ");
}

/** Pairs after commas, of an option that may be repeated. */
function each<T>(add: (text: string, before: T) => T): (text: string, before: T) => T {
  return (text, before) => text.split(",").reduce((all, pair) => add(pair, all), before);
}

function spread(
  text: string,
  before: Partial<Record<BetweenRunsPart, number>>,
): Partial<Record<BetweenRunsPart, number>> {
  const [name = "", value = ""] = text.split("=");
  const part = BETWEEN_RUNS_PARTS.find((one) => one === name);
  if (part === undefined)
    throw new InvalidArgumentError(`expected one of ${BETWEEN_RUNS_PARTS.join(", ")}, got ${name}`);
  const share = Number(value);
  if (value === "" || !(share >= 0 && share <= 2))
    throw new InvalidArgumentError(`expected ${name}=a share of 0 to 2, got ${JSON.stringify(text)}`);
  return { ...before, [part]: share };
}

function fix(text: string, before: Partial<Record<Parameter, number>>): Partial<Record<Parameter, number>> {
  const [name = "", value = ""] = text.split("=");
  const parameter = PARAMETERS.find((one) => one === name);
  if (parameter === undefined) throw new InvalidArgumentError(`expected one of ${PARAMETERS.join(", ")}, got ${name}`);
  const micros = Number(value);
  if (value === "" || !(micros >= 0 && Number.isFinite(micros)))
    throw new InvalidArgumentError(`expected ${name}=microseconds of 0 or more, got ${JSON.stringify(text)}`);
  return { ...before, [parameter]: micros };
}
