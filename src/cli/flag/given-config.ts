import { ConfigError } from "#config/config-error.ts";
import { loadConfig } from "#config/load.ts";
import type { Override } from "#config/override.ts";
import type { Config } from "#config/schema.ts";
import { type Given, type KeyFlag, keyOverrides, textOf } from "./key-flags.ts";

/** A configuration, as far as it could be read, and all that is wrong with what was given, a line each. */
export interface GivenConfig {
  readonly config: Config | undefined;
  readonly lines: readonly string[];
}

/**
 * From the file that --config names, the environment, and a command's flags, which win. `under` loses to the flags
 * alone.
 */
export function givenConfig(
  given: Given,
  keyFlags: readonly KeyFlag[],
  environment: Readonly<Record<string, string | undefined>>,
  under: readonly Override[] = [],
): GivenConfig {
  const { overrides, problems } = keyOverrides(given, keyFlags);
  try {
    const file = textOf(given, "config");
    return { config: loadConfig({ file, environment, overrides: [...under, ...overrides] }), lines: problems };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { config: undefined, lines: [...problems, ...error.lines] };
  }
}
