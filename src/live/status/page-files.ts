import { once } from "node:events";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";

/** Name of the module that the page starts with, below the folder of files; sources end as this file does. */
export const PAGE_MAIN = `status/main${extname(import.meta.filename)}`;
/** Name under which the library that draws the page is served. */
export const PAGE_LIBRARY = "library/preact.js";

type Files = ReadonlyMap<string, string>;
let files: Promise<Files> | undefined;

/**
 * The scripts of the status page by name, such as "status/main.ts". Read once, as the first one is asked for, and on a thread of
 * their own: taking away their types is 0.2 s of CPU, for which neither the start nor requests should wait.
 */
export function pageFiles(): Promise<Files> {
  files ??= read().catch((error: unknown) => {
    files = undefined;
    throw error;
  });
  return files;
}

async function read(): Promise<Files> {
  const worker = new Worker(new URL("./page-files.worker.ts", import.meta.url), { execArgv: [] });
  const [entries] = (await once(worker, "message")) as [readonly [string, string][]];
  return new Map(entries);
}
