import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type * as z from "zod";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import type { EngineSource } from "#engine/engine-source.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import { ConfigError } from "./config-error.ts";
import { ENGINE_FILE_SCHEMA } from "./engine-schema.ts";
import { checkShape, problemLine, unknownWord } from "./problem.ts";
import { readYamlFile } from "./yaml-file.ts";

const ENGINES_DIRECTORY: string = resolve(import.meta.dirname, "../../config/engines");

/** An engine, and how far its calibration was from the real one; undefined where the file does not state it. */
export interface CalibratedEngine {
  readonly engine: EngineConfig;
  readonly residuals: StepResiduals | undefined;
  /** What it was fitted to. */
  readonly source: EngineSource | undefined;
}

/**
 * Reads an engine that comes with gnomon by name, or any file by its path; vLLM's defaults without either. Throws
 * ConfigError with every problem.
 */
export function loadEngine(nameOrPath: string | undefined): EngineConfig {
  return nameOrPath === undefined ? engineDefaults() : loadCalibratedEngine(nameOrPath).engine;
}

/** The same with what its calibration left to chance. */
export function loadCalibratedEngine(nameOrPath: string): CalibratedEngine {
  const file = fileOf(nameOrPath);
  const yaml = readYamlFile(file);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  const checked = checkShape(ENGINE_FILE_SCHEMA, yaml.value.value);
  if (!checked.ok) {
    throw new ConfigError(
      checked.problems.map((problem) => problemLine(problem, `${file} line ${yaml.value.lineOf(problem.path)}`)),
    );
  }
  return engineOf(checked.value);
}

/** An engine as its file would say it: all parameters, without what only tests set. */
export function engineParameters(engine: EngineConfig): Readonly<Record<string, unknown>> {
  const { coalesce: _coalesce, check: _check, ...parameters } = engine;
  return JSON.parse(JSON.stringify(parameters)) as Record<string, unknown>;
}

/** The engine that such parameters make; `where` names their place in errors. Throws ConfigError. */
export function engineOfParameters(value: unknown, where: string): CalibratedEngine {
  const checked = checkShape(ENGINE_FILE_SCHEMA, value);
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => problemLine(problem, where)));
  return engineOf(checked.value);
}

/** Names of the engines that come with gnomon, in order. */
export function engineNames(): string[] {
  const files = existsSync(ENGINES_DIRECTORY) ? readdirSync(ENGINES_DIRECTORY) : [];
  return files
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => file.slice(0, -".yaml".length))
    .sort();
}

function fileOf(nameOrPath: string): string {
  if (/[/\\]|\.ya?ml$/.test(nameOrPath)) return resolve(nameOrPath);
  const names = engineNames();
  if (names.includes(nameOrPath)) return join(ENGINES_DIRECTORY, `${nameOrPath}.yaml`);
  throw new ConfigError([`engine: ${unknownWord("engine", nameOrPath, names)}`]);
}

function engineOf(file: z.output<typeof ENGINE_FILE_SCHEMA>): CalibratedEngine {
  const { stepTime = engineDefaults().stepTime, tier, residuals, source, ...rest } = file;
  return { engine: engineDefaults({ ...rest, stepTime: withoutUndefined(stepTime), tier }), residuals, source };
}

/** zod leaves keys with undefined where a key may be absent; the engine's types have them absent. */
function withoutUndefined(stepTime: unknown): EngineConfig["stepTime"] {
  return JSON.parse(JSON.stringify(stepTime)) as EngineConfig["stepTime"];
}
