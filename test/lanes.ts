import { join, relative } from "node:path";

/**
 * Folders whose tests leave nothing behind in their process, no socket and no setting: they run in one, where the code is
 * loaded and compiled once. All others have a process per file.
 */
const ONE_PROCESS = [
  "core",
  "engine",
  "sim",
  "trace",
  "config",
  "drive",
  "shadow",
  "emulator",
  "live",
  "serve",
  "deploy",
];
/** Those among them that measure their own process, or start others. */
const ALONE: ReadonlySet<string> = new Set([
  "test/trace/reader.test.ts",
  "test/live/gateway/mixed.test.ts",
  "test/live/hang/hung-process.test.ts",
  "test/live/share/redis-link.test.ts",
  "test/live/share/redis-places.test.ts",
  "test/live/warm-up/warm-up-path.test.ts",
  "test/serve/worker/workers-share.test.ts",
]);

/** Whether a test file, named from the root, may share its process with others. */
export function sharesProcess(file: string): boolean {
  return !ALONE.has(file) && ONE_PROCESS.some((folder) => relative("test", file).startsWith(join(folder, "/")));
}
