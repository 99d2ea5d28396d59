import { posix } from "node:path";
import type { SourceFile } from "./source-files.ts";

/** Files that exactly one other file imports, and those of them whose importer is in the same folder. */
export function singleImporters(files: readonly SourceFile[]): {
  readonly single: number;
  readonly sameFolder: number;
} {
  const importers = new Map<string, Set<string>>();
  for (const { path, imports } of files) {
    for (const one of imports) importers.set(one.path, (importers.get(one.path) ?? new Set()).add(path));
  }
  const alone = [...importers].filter(([, by]) => by.size === 1);
  const sameFolder = alone.filter(([path, [by]]) => by !== undefined && posix.dirname(by) === posix.dirname(path));
  return { single: alone.length, sameFolder: sameFolder.length };
}
