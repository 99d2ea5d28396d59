import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { TRACE_FOLDER_MODE } from "#trace/segment-writer.ts";

/**
 * Makes a folder of traces and those above it that are missing, their owner's alone; rejects with the system's error. Node's own recursive mkdir never
 * comes back where the system reports of a folder under an existing one that there is no such file, as /proc does.
 */
export async function makeFolder(path: string): Promise<void> {
  const missing: string[] = [];
  for (let folder = resolve(path); !(await exists(folder)); folder = dirname(folder)) missing.push(folder);
  for (const folder of missing.toReversed()) await mkdir(folder, TRACE_FOLDER_MODE).catch(ignoreExisting);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Somebody else may make it at the same time. */
function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}
