import { readFileSync } from "node:fs";
import { ConfigError } from "#config/config-error.ts";
import { unreadableReason } from "#config/yaml-file.ts";

/** The text of a file that the configuration names at `key`. Throws ConfigError where it cannot be read. */
export function readConfiguredFile(key: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError([`${key}: expected a readable file, got ${file}: ${unreadableReason(error)}`]);
  }
}
