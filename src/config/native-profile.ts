import { existsSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { checkProfile, completeProfile } from "#core/profile/check.ts";
import { shown } from "#core/plugin/parameter.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { ConfigError } from "./config-error.ts";
import { checkShape, pathText, problemLine, unknownWord } from "./problem.ts";
import { PROFILE_FILES } from "./profile-files.ts";
import type { ProfileSignals } from "./profile-signals.ts";
import { PROFILE_FILE_SCHEMA, type InlineProfile, type ProfileFile } from "./profile-schema.ts";
import { readYamlFile, type YamlFile } from "./yaml-file.ts";

/** A profile that was read, checked and completed. */
export interface NamedProfile {
  readonly name: string;
  readonly summary: string;
  readonly source: string;
  readonly spec: ProfileSpec;
  /** What it states of engines' gauges; `signalsOf` has those of every profile. */
  readonly signals?: ProfileSignals;
}

/** The profiles that come with gnomon. */
const PROFILES_DIRECTORY: string = resolve(import.meta.dirname, "../../config/profiles");

/** Names of the shipped profiles, in order. */
export function profileNames(directory: string = PROFILES_DIRECTORY): string[] {
  const files = existsSync(directory) ? readdirSync(directory) : [];
  return files
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => file.slice(0, -".yaml".length))
    .sort();
}

/**
 * Reads a shipped profile by name, or any file by its path (which has a slash or ends in .yaml or .yml). Throws
 * ConfigError with every problem: an unknown name, a broken file, a cycle of `extends`, or what the catalog refuses.
 */
export function loadNativeProfile(nameOrPath: string): NamedProfile {
  const file = isPath(nameOrPath) ? resolve(nameOrPath) : shippedFile(nameOrPath, PROFILES_DIRECTORY);
  const merged = loadChain(file, []);
  const { name, extends: _parent, ...body } = merged.profile;
  const { summary = "", source = "", signals, picker, ...stated } = body;
  const problems = checkProfile({ ...stated, picker });
  if (problems.length > 0 || picker === undefined) {
    throw new ConfigError(
      problems.map(
        (problem) => `${problem.path === "" ? "" : `${problem.path}: `}${problem.message} (${merged.yaml.name})`,
      ),
    );
  }
  const spec = completeProfile({ ...stated, picker });
  return { name, summary, source, spec, ...(signals !== undefined && { signals }) };
}

/** The signals of a shipped profile, for another one of the same router. */
export function signalsAs(shipped: string): Pick<NamedProfile, "signals"> {
  const { signals } = loadNativeProfile(shipped);
  return signals === undefined ? {} : { signals };
}

/**
 * A profile that the configuration holds itself, under `name`; the configuration was checked. Throws ConfigError, with
 * paths below `profiles`. Without `readsFiles` it may extend shipped profiles alone.
 */
export function inlineProfile(name: string, body: InlineProfile, readsFiles: boolean): NamedProfile {
  const at = pathText(["profiles", name]);
  const { extends: parent, ...own } = body;
  const base = parent === undefined ? {} : extended(parent, `${at}.extends`, readsFiles);
  const { name: _base, extends: _grandparent, ...whole } = { ...base, ...defined(own) };
  const { summary = "", source = "", signals, picker, ...stated } = whole;
  const problems = checkProfile({ ...stated, picker });
  if (problems.length > 0 || picker === undefined) {
    throw new ConfigError(problems.map(({ path, message }) => `${at}${path === "" ? "" : `.${path}`}: ${message}`));
  }
  const spec = completeProfile({ ...stated, picker });
  return { name, summary, source, spec, ...(signals !== undefined && { signals }) };
}

function extended(parent: string, at: string, readsFiles: boolean): Partial<ProfileFile> {
  if (!readsFiles && isPath(parent)) {
    throw new ConfigError([`${at}: expected the name of a shipped profile, got the path ${shown(parent)}`]);
  }
  try {
    const file = isPath(parent) ? resolve(parent) : shippedFile(parent, PROFILES_DIRECTORY);
    return loadChain(file, []).profile;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(error.lines.map((line) => `${at}: ${line.replace(/^profile: /, "")}`));
  }
}

interface ReadProfile {
  readonly profile: ProfileFile;
  readonly yaml: YamlFile;
}

function loadChain(file: string, below: readonly string[]): ReadProfile {
  if (below.includes(file)) {
    throw new ConfigError([
      `extends: expected a chain that ends, got the cycle ${[...below.slice(below.indexOf(file)), file].join(" -> ")}`,
    ]);
  }
  const read = readProfile(file);
  const parent = read.profile.extends;
  if (parent === undefined) return read;
  const parentFile = isPath(parent) ? resolve(dirname(file), parent) : shippedFile(parent, dirname(file));
  const base = loadChain(parentFile, [...below, file]).profile;
  return { yaml: read.yaml, profile: { ...base, ...defined(read.profile) } };
}

function readProfile(file: string): ReadProfile {
  const yaml = readYamlFile(file);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  const checked = checkShape(PROFILE_FILE_SCHEMA, yaml.value.value);
  if (!checked.ok) {
    const { lineOf } = yaml.value;
    throw new ConfigError(
      checked.problems.map((problem) => problemLine(problem, `${file} line ${lineOf(problem.path)}`)),
    );
  }
  return { profile: checked.value, yaml: yaml.value };
}

function shippedFile(name: string, beside: string): string {
  for (const directory of [beside, PROFILES_DIRECTORY]) {
    const file = join(directory, `${name}.yaml`);
    if (existsSync(file)) return file;
  }
  const unknown = unknownWord("profile", name, profileNames());
  throw new ConfigError([`profile: ${unknown}; a path, with a / or .yaml, names ${PROFILE_FILES}`]);
}

export function isPath(nameOrPath: string): boolean {
  return /[/\\]|\.ya?ml$/.test(nameOrPath);
}

function defined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as T;
}
