import { posix } from "node:path";
import type { SourceFile } from "./source-files.ts";

export interface FolderCycles {
  /** A folder of src, or src itself for the folders in it. */
  readonly top: string;
  readonly folders: number;
  /** Folders that reach themselves over others by imports that are there at run time. */
  readonly byValue: number;
  /** The same by all imports. */
  readonly byType: number;
}

/** Of src's own folders, and within each of them of its folders, those that lie on a cycle of imports. */
export function folderCycles(files: readonly SourceFile[]): FolderCycles[] {
  const tops = [...new Set(files.map(({ path }) => path.split("/")[1]!))].filter((top) => !top.includes(".")).sort();
  return [
    cyclesOf("src", files, (path) => path.split("/").slice(0, 2).join("/")),
    ...tops.map((top) => {
      const prefix = `src/${top}/`;
      const own = files.filter(({ path }) => path.startsWith(prefix));
      return cyclesOf(`src/${top}`, own, (path) => (path.startsWith(prefix) ? roomOf(path, prefix) : undefined));
    }),
  ];
}

/** The folder that a file is in; a file at the top, which belongs to none of them, is a room of its own. */
function roomOf(path: string, prefix: string): string {
  return path.indexOf("/", prefix.length) < 0 ? path : posix.dirname(path);
}

function cyclesOf(
  top: string,
  files: readonly SourceFile[],
  folderOf: (path: string) => string | undefined,
): FolderCycles {
  const folders = new Set(files.flatMap(({ path }) => folderOf(path) ?? []));
  return {
    top,
    folders: folders.size,
    byValue: inCycles(edges(files, folderOf, false)),
    byType: inCycles(edges(files, folderOf, true)),
  };
}

type Edges = ReadonlyMap<string, ReadonlySet<string>>;

function edges(
  files: readonly SourceFile[],
  folderOf: (path: string) => string | undefined,
  withTypes: boolean,
): Edges {
  const from = new Map<string, Set<string>>();
  for (const { path, imports } of files) {
    const folder = folderOf(path);
    if (folder === undefined) continue;
    for (const { path: target, isType } of imports) {
      const to = folderOf(target);
      if (to === undefined || to === folder || (isType && !withTypes)) continue;
      from.set(folder, (from.get(folder) ?? new Set()).add(to));
    }
  }
  return from;
}

function inCycles(from: Edges): number {
  return [...from.keys()].filter((folder) => reachable(from, folder).has(folder)).length;
}

function reachable(from: Edges, start: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const waiting = [start];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const next of from.get(folder) ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      waiting.push(next);
    }
  }
  return seen;
}
