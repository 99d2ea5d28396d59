import { existsSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { loadEngine } from "#config/engine-file.ts";
import type { EngineConfig } from "#engine/config.ts";
import { type Calibration, CannotIdentify, calibrate } from "#shadow/calibrate/calibrate.ts";
import { engineText } from "#shadow/calibrate/engine-text.ts";
import { type Evidence, evidenceOf } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import { modelErrorOf } from "#shadow/calibrate/model-error.ts";
import { type Parameter, PARAMETERS } from "#shadow/calibrate/parameters.ts";
import { calibrateTable, evaluationTable } from "./calibrate-table.ts";
import { addSizeFlags, type SizeFlags, sizedEngine } from "./engine-sizes.ts";
import { checkOutputFile } from "../check-output-file.ts";
import { loadOnly } from "./load-only.ts";
import { CommandFailure } from "#serve/command-failure.ts";
import { readRecordedTrace } from "../trace/recorded-trace.ts";

interface CalibrateFlags extends SizeFlags {
  readonly output?: string;
  readonly engine?: string;
  readonly endpoint?: readonly string[];
  readonly fix: Partial<Record<Parameter, number>>;
  readonly train: number;
  readonly evaluate: boolean;
  readonly json?: string;
}

/** Fits an engine file to recorded traffic and says how far it is to be trusted. */
export function calibrateCommand(): Command {
  const command = new Command("calibrate")
    .description("Fit an engine's step time to recorded traffic, with its error on requests held out.")
    .argument(
      "<trace>",
      "folder that --record or trace import wrote, one of its segments, or the folder of a run of vLLM",
    )
    .option("-o, --output <file>", "write the engine here, for what-if and simulate (default: standard output)")
    .option("--engine <file>", "engine by name or path whose sizes and scheduling hold where nothing else tells them")
    .option("--endpoint <id...>", "only these endpoints; for fleets of different machines")
    .option("--fix <parameter=micros...>", `a parameter known from elsewhere: ${PARAMETERS.join(", ")}`, fixes, {})
    .option("--train <part>", "part of the requests, by arrival, that is fitted; the rest tests the fit", part, 0.7)
    .option("--evaluate", "fit nothing: how far --engine is from what happened in this trace", false)
    .option("--json <file>", "write parameters and errors as JSON; - for stdout, without the engine and the table")
    .action(run);
  return addSizeFlags(command);
}

async function run(path: string, flags: CalibrateFlags): Promise<void> {
  if (!existsSync(path)) throw new ConfigError([`calibrate: expected a trace, got ${path}, which is not there`]);
  if (flags.evaluate && (flags.engine === undefined || flags.output !== undefined))
    throw new ConfigError(["--evaluate: expected --engine and no --output, since nothing is fitted"]);
  checkOutputFile("--output", flags.output);
  checkOutputFile("--json", flags.json);
  const { run: recorded, notes: damage } = await readRecordedTrace(path);
  const { engine: sizes, notes: sizing } = sizedEngine(loadEngine(flags.engine), recorded, flags, !flags.evaluate);
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
      "note: the trace does not tell what was cached: the simulated engine's own hits stand for it\n",
    );
  if (flags.evaluate) return evaluated(path, evidence, sizes, flags);
  const calibration = fitted(path, evidence, sizes, flags);
  report(path, calibration, evidence, notes, load, flags);
}

/** How far the engine is from what happened, request by request where and when the real ones had them. */
function evaluated(path: string, evidence: Evidence, engine: EngineConfig, { json }: CalibrateFlags): void {
  const outcome = forcedReplay(evidence, engine);
  const error = modelErrorOf(evidence, outcome, () => true);
  if (error.requests === 0) throw new CommandFailure(`${path} has no request whose times can be compared`);
  const byEndpoint = Object.fromEntries(
    evidence.endpoints.map((endpoint, number) => [
      endpoint,
      modelErrorOf(evidence, outcome, (row) => evidence.rows[row]!.endpoint === number),
    ]),
  );
  if (json !== undefined) write(json, `${JSON.stringify({ error, byEndpoint, left: evidence.left })}\n`);
  if (json !== "-") process.stdout.write(evaluationTable(error, byEndpoint));
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
  load: Readonly<Record<string, number>>,
  flags: CalibrateFlags,
): void {
  const text = engineText(calibration, { traces: [basename(path)], requests: evidence.rows.length, notes });
  const { engine: _engine, ...figures } = calibration;
  for (const caveat of calibration.caveats) process.stderr.write(`note: ${caveat}\n`);
  if (flags.json !== undefined)
    write(flags.json, `${JSON.stringify({ ...figures, left: evidence.left, loadOnly: load })}\n`);
  if (flags.output !== undefined) write(flags.output, text);
  else if (flags.json !== "-") process.stdout.write(text);
  const stream =
    flags.output === undefined || flags.output === "-" || flags.json === "-" ? process.stderr : process.stdout;
  stream.write(calibrateTable(calibration));
}

function write(file: string, text: string): void {
  if (file === "-") process.stdout.write(text);
  else writeFileSync(file, text);
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
