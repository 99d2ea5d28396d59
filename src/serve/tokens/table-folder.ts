import { accessSync, constants, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "#config/schema.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The folder of tables that were made of tokenizer.json; undefined where none are kept. */
export function tableFolder({ tokenizer }: Config, environment: Environment): string | undefined {
  const { cacheFolder } = tokenizer;
  if (cacheFolder === "off") return undefined;
  return cacheFolder === "auto" ? ownFolder(environment) : cacheFolder;
}

/** A folder for what can be made again; undefined where none can be written. */
export function cacheFolder(environment: Environment, name: string): string | undefined {
  const folder = ownFolder(environment);
  return folder && join(folder, name);
}

/** The first that can be had: in a container the home may be missing or not be written to. */
function ownFolder({ XDG_CACHE_HOME: given, HOME: home }: Environment): string | undefined {
  const bases = [given, home && join(home, ".cache")].filter((base) => base !== undefined && base !== "");
  const folders = [...bases.map((base) => join(base!, "gnomon")), join(tmpdir(), `gnomon-${process.getuid?.() ?? ""}`)];
  return folders.find(canWrite);
}

function canWrite(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
