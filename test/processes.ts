import { join, relative } from "node:path";

/** Test files that run in one process. */
export interface TestProcess {
  readonly files: readonly string[];
  /** Several share it: what one of them leaves open must not keep it from ending. */
  readonly isShared: boolean;
}

/**
 * Folders whose tests leave nothing behind in their process, no socket and no setting: each row is one process, where the
 * code is loaded and compiled once. Tests in a browser wait most and come first, then the longest rows, which take about
 * the same time. All other files have a process each.
 */
const SHARED: readonly (readonly string[])[] = [
  ["page", "picker"],
  ["live"],
  ["core", "engine", "sim", "trace", "config"],
  ["shadow", "serve", "emulator", "drive", "deploy"],
  ["cli/calibrate", "cli/compare", "cli/evaluate", "cli/explain", "cli/rollout", "cli/simulate", "cli/sweep"],
  ["cli/trace", "cli/tune", "cli/what-if"],
];
/** Files in these folders that measure their own process, or start others. */
const ALONE: ReadonlySet<string> = new Set([
  "test/live/gateway/mixed.test.ts",
  "test/live/hang/hung-process.test.ts",
  "test/live/share/redis-link.test.ts",
  "test/live/share/redis-places.test.ts",
  "test/live/warm-up/warm-up-path.test.ts",
  "test/serve/worker/workers-share.test.ts",
  "test/trace/reader.test.ts",
]);
/** Folders whose files take longest: begun first, or one core would wait for them at the end. */
const LONG = ["twin", "cli/serve", "live/hang"];

/** The processes for some test files, named from the root, in the order in which they are to begin. */
export function testProcesses(files: readonly string[]): TestProcess[] {
  const shared = SHARED.map((folders) => files.filter((file) => !ALONE.has(file) && isInSome(file, folders)));
  const alone = files.filter((file) => !shared.some((group) => group.includes(file)));
  const [long, short] = [true, false].map((isLong) => alone.filter((file) => isInSome(file, LONG) === isLong));
  return [
    ...shared.filter((group) => group.length > 0).map((group) => ({ files: group, isShared: true })),
    ...eachAlone([...long!, ...short!]),
  ];
}

export function eachAlone(files: readonly string[]): TestProcess[] {
  return files.map((file) => ({ files: [file], isShared: false }));
}

function isInSome(file: string, folders: readonly string[]): boolean {
  return folders.some((folder) => relative("test", file).startsWith(join(folder, "/")));
}
