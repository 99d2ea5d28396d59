import { join, relative } from "node:path";

/** Test files that run in one process. */
export interface TestProcess {
  readonly files: readonly string[];
  /** Several share it: what one of them leaves open must not keep it from ending. */
  readonly isShared: boolean;
}

/** Of documents, sources and the runner itself. */
const OF_THE_TEXT = ["documents.test.ts", "rerun.test.ts", "specification.test.ts", "tidy.test.ts", "readme"];

/**
 * Folders and files whose tests leave nothing behind in their process, no socket and no setting: each row is one
 * process, where the code is loaded and compiled once, and one browser started. Begun in this order: tests in a browser
 * and of gateways that start and end wait most and come first, then the rows by how long they take, so that no long one is
 * left for the end. All other files have a process each, since they measure or set something of their process, or take long
 * by themselves.
 *
 * What keeps a run short, beside this order:
 * - a test waits for what is to happen, and not for a time to pass; sockets of tests that write small pieces are made with
 *   `noDelay`, or every piece may wait 40 ms for the last one's acknowledgement;
 * - an engine that only has to be there, or to answer, is one in the test's process (cli/serve/answering-engine.ts): each
 *   emulated one is a process, and a gateway that starts takes half a second of CPU already;
 * - a gateway whose process is not what is tested runs in the test's own (cli/serve/gateway-here.ts);
 * - a gateway that a test starts needs no warm-up (`listen.warmUpMillis` 0), which takes 1 to 2 s of CPU;
 * - what several tests look at (a simulation, a fitted engine, a tokenizer) is made once;
 * - hooks of a file that make something stand in a suite of its own: else they run around every test of the process;
 * - a program that is started for each of many cases is started once for all, where it takes several;
 * - test/run.ts prints the slowest files at its end. `node --cpu-prof` on a row (`--test --test-isolation=none FILE...`)
 *   shows what takes the CPU.
 */
const SHARED: readonly (readonly string[])[] = [
  ["page", "picker", "shadow/report/what-if-page.test.ts"],
  ["cli/serve", "cli/bin.test.ts", "cli/closed-pipe.test.ts", "cli/keys.test.ts"],
  ["live"],
  ["shadow"],
  ["core", "engine", "sim", "trace", "config"],
  ["serve", "emulator", "drive", "deploy"],
  ["cli/calibrate", "cli/compare", "cli/evaluate", "cli/explain", "cli/rollout", "cli/simulate", "cli/sweep"],
  ["cli/trace", "cli/tune", "cli/what-if", "cli/why"],
  ["bench", "cli", "mutants", ...OF_THE_TEXT],
];
/** Files in these folders that measure their own process, or wait long for others. */
const ALONE: ReadonlySet<string> = new Set([
  "test/bench/parsers.test.ts",
  "test/cli/long-work/long-work.test.ts",
  "test/deploy/image.test.ts",
  "test/deploy/package.test.ts",
  "test/live/gateway/mixed.test.ts",
  "test/live/hang/hung-process.test.ts",
  "test/live/share/redis-link.test.ts",
  "test/live/share/redis-places.test.ts",
  "test/live/warm-up/warm-up-path.test.ts",
  "test/trace/reader.test.ts",
]);
/** Folders whose files take longest: begun first, or one core would wait for them at the end. */
const LONG = ["live/hang", "faults", "deploy", "twin"];

/** The processes for some test files, named from the root, in the order in which they are to begin. */
export function testProcesses(files: readonly string[]): TestProcess[] {
  const rowOf = (file: string): number =>
    ALONE.has(file) ? -1 : SHARED.findIndex((folders) => isInSome(file, folders));
  const shared = SHARED.map((_, row) => files.filter((file) => rowOf(file) === row));
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
  const path = relative("test", file);
  return folders.some((folder) => path === folder || path.startsWith(join(folder, "/")));
}
