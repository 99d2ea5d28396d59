import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
const { engines } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { engines: { node: string } };
/** The oldest that package.json admits, such as "24.12". */
export const OLDEST = /^>=(\d+\.\d+)$/.exec(engines.node)![1]!;
const PLACE = "node_modules/.cache/oldest-node";
/** Brings it; .ci/run does the same. */
export const BRING = `npm install --no-save --prefix ${PLACE} node-${process.platform}-${process.arch}@${OLDEST}`;

export interface FoundNode {
  readonly version: string;
  readonly path: string;
}

/** Every Node on this machine, each version once: this one, what PATH names, and the oldest where it was brought. */
export function foundNodes(): FoundNode[] {
  const inPath = (process.env["PATH"] ?? "").split(delimiter).flatMap((folder) => globSync(join(folder, "node")));
  const brought = globSync(join(ROOT, PLACE, "node_modules/node-*/bin/node"));
  const found = new Map<string, string>();
  for (const path of [process.execPath, ...brought, ...inPath]) {
    const version = execFileSync(path, ["--version"], { encoding: "utf8" }).trim().slice(1);
    if (!found.has(version)) found.set(version, path);
  }
  return [...found].map(([version, path]) => ({ version, path }));
}

/** Whether package.json admits a version. */
export function isAdmitted({ version }: FoundNode): boolean {
  return version.localeCompare(OLDEST, "en", { numeric: true }) >= 0;
}
