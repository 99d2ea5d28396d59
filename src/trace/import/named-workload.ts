import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { ImportError } from "./import-report.ts";

const DIRECTORY: string = resolve(import.meta.dirname, "../../../config/workloads");

/** Names of the workloads that come with gnomon, in order. */
export function workloadNames(): string[] {
  return readdirSync(DIRECTORY)
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => file.slice(0, -".yaml".length))
    .sort();
}

/**
 * The file of a workload: one that comes with gnomon by its name, any other by its path. A word without a slash, a
 * backslash or a dot is a name first; a file of that name is meant where none is called so. Every command looks here.
 * Throws ImportError with the names where it is neither.
 */
export function workloadFile(nameOrPath: string): string {
  if (/[/\\.]/.test(nameOrPath)) return nameOrPath;
  const names = workloadNames();
  if (names.includes(nameOrPath)) return join(DIRECTORY, `${nameOrPath}.yaml`);
  if (existsSync(nameOrPath)) return nameOrPath;
  const got = JSON.stringify(nameOrPath);
  throw new ImportError(`workload: expected the path of a file, or one of ${names.join(", ")}, got ${got}`);
}
