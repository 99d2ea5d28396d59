import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "#config/config-error.ts";

/**
 * Refuses a file that could not be written, before the work whose result goes there. "-" is standard output. Throws
 * ConfigError.
 */
export function checkOutputFile(flag: string, file: string | undefined): void {
  if (file === undefined || file === "-") return;
  if (!existsSync(dirname(file)))
    throw new ConfigError([`${flag}: expected a file in a folder that is there, got ${file}`]);
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true)
    throw new ConfigError([`${flag}: expected a file, got the folder ${file}`]);
  if (!isWritable(file) && !isWritable(dirname(file)))
    throw new ConfigError([`${flag}: expected a file that may be written, got ${file}`]);
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
