import { ConfigError } from "#config/config-error.ts";
import type { Config } from "#config/schema.ts";
import { readConfiguredFile } from "./configured-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What a variable holds; undefined where none is named or it is not set. Without white space around it: a Secret that was
 * encoded from `echo` or from a file ends with a line feed, which no header can hold.
 */
export function secretOf(variable: string | undefined, environment: Environment): string | undefined {
  return variable === undefined ? undefined : environment[variable]?.trim();
}

export interface Tokens {
  /** Opens everything below /gnomon/. */
  readonly adminToken: string | undefined;
  /** Opens the pages alone. */
  readonly statusToken: string | undefined;
}

/** Throws ConfigError where a file of the configuration holds none. */
export function adminTokens({ admin }: Config, environment: Environment): Tokens {
  return {
    adminToken: fromFile("admin.tokenFile", admin.tokenFile) ?? secretOf(admin.tokenEnv, environment),
    statusToken:
      fromFile("admin.statusTokenFile", admin.statusTokenFile) ?? secretOf(admin.statusTokenEnv, environment),
  };
}

function fromFile(key: string, file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  const token = readConfiguredFile(key, file).trim();
  if (token === "") throw new ConfigError([`${key}: expected a token, got an empty file ${file}`]);
  return token;
}
