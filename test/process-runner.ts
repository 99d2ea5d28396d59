import { type ChildProcess, spawn } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { FILE_TIME } from "./file-times.ts";
import type { TestProcess } from "./processes.ts";

const ROOT = resolve(import.meta.dirname, "..");
const PRELOADED = ["./test/known-modules.ts", "./test/property-seed.ts"].flatMap((name) => ["--import", name]);
const running = new Set<ChildProcess>();
/** What was compiled by one process is read back by the next, also by those that tests start. */
const COMPILED = resolve(ROOT, "node_modules/.cache/gnomon");
/** One more than there are cores, since tests also wait: for engines that start, for a browser, for sockets. */
export const AT_ONCE = availableParallelism() + 1;
/**
 * Garbage is collected on the process's own thread, since all cores are busy, and seldom from the start: a tenth of the CPU.
 * Old objects are not looked through before there is a gigabyte of them: another tenth where many files share a process.
 */
const GC_OPTIONS = [
  "--single-threaded-gc",
  "--min-semi-space-size=64",
  "--max-semi-space-size=64",
  "--initial-heap-size=1024",
];
/** Of a process that many files share. */
const SHARED_OPTIONS = ["--test", "--test-isolation=none", "--test-force-exit"];
/** Where all of them put their temporary files, also those whose process was killed; removed at the end. */
const SCRATCH = mkdtempSync(join(tmpdir(), "gnomon-tests-"));
/** What people read, and behind it what `slowest` reads. */
const REPORTERS = ["spec", "./test/file-times.ts"].flatMap((name) => [
  `--test-reporter=${name}`,
  "--test-reporter-destination=stdout",
]);
const SLOWEST_SHOWN = 8;
export const FAILURES = "✖ failing tests:";
/** A process that takes as long hangs: the longest takes one minute of an idle machine. */
const PROCESS_MILLIS_MAX = 6 * 60_000;

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

export const NONE: Counts = { passed: 0, failed: 0, skipped: 0 };

export function sum(a: Counts, b: Counts): Counts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/** What one process came to. */
export interface Outcome extends TestProcess {
  readonly name: string;
  readonly output: string;
  readonly code: number;
  /** CPU of it and of what it started, as far as it waited for that, in seconds; 0 where the system does not count it. */
  readonly cpuSeconds: number;
}

const TICKS_PER_SECOND = 100;
let countedSeconds = 0;

/** CPU of children that ended since this was asked last: of the one that just ended. */
function cpuSecondsOfEnded(): number {
  const before = countedSeconds;
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    // Behind the name, which may hold blanks: user and system time of children are the 16th and 17th of all.
    const [user, system] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(13, 15)
      .map(Number);
    countedSeconds = (user! + system!) / TICKS_PER_SECOND;
  } catch {
    // Only Linux counts it there.
  }
  return countedSeconds - before;
}

/** Runs the tests of one process; several files of it go through `node --test`, a single one is run as it is. */
function run({ files, isShared }: TestProcess, environment: NodeJS.ProcessEnv): Promise<Outcome> {
  const argv = [...GC_OPTIONS, ...PRELOADED, ...REPORTERS, ...(isShared ? SHARED_OPTIONS : []), ...files];
  const env = {
    NODE_COMPILE_CACHE: COMPILED,
    ...process.env,
    ...environment,
    TMPDIR: SCRATCH,
    XDG_CACHE_HOME: join(SCRATCH, "cache"),
  };
  const child = spawn(process.execPath, argv, { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
  const limit = setTimeout(() => {
    child.kill("SIGKILL");
    // What it started may hold its output open.
    for (const stream of [child.stdout, child.stderr]) stream.destroy();
  }, PROCESS_MILLIS_MAX);
  running.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const name = isShared ? `${files.length} files in one process: ${files[0]} to ${files.at(-1)}` : files[0]!;
  let cpuSeconds = 0;
  child.once("exit", () => (cpuSeconds = cpuSecondsOfEnded()));
  return new Promise((done) =>
    child.once("close", (code) => {
      clearTimeout(limit);
      running.delete(child);
      done({ name, files, isShared, output, code: code ?? 1, cpuSeconds });
    }),
  );
}

/** The totals that stand below a process's tests; undefined where there are none, as where it was killed. */
export function countsOf(output: string): Counts | undefined {
  const counts = { ...NONE };
  let isCounted = false;
  for (const [, kind, number] of output.matchAll(/^ℹ (pass|fail|cancelled|skipped|todo) (\d+)$/gm)) {
    isCounted = true;
    if (kind === "pass") counts.passed += Number(number);
    else if (kind === "fail" || kind === "cancelled") counts.failed += Number(number);
    else counts.skipped += Number(number);
  }
  return isCounted ? counts : undefined;
}

/** What went wrong in a process, once more for the end of the page; "" where nothing did. */
export function failuresOf({ name, output, code }: Outcome): string {
  const begin = output.indexOf(FAILURES);
  if (begin >= 0) return output.slice(begin + FAILURES.length);
  const isCounted = countsOf(output) !== undefined;
  return code === 0 && isCounted
    ? ""
    : `\n${name}: ended with code ${code}, ${isCounted ? "" : "without its totals"}\n`;
}

function withoutTimes(output: string): string {
  return output.replaceAll(new RegExp(`^${FILE_TIME}.*\n`, "gm"), "");
}

/** The files whose tests took longest, which is where time can be had: a line each. */
export function slowest(outcomes: readonly Outcome[]): string {
  return outcomes
    .flatMap(({ output }) => output.split("\n").filter((line) => line.startsWith(FILE_TIME)))
    .map((line) => line.slice(FILE_TIME.length).split(" "))
    .sort(([, one], [, other]) => Number(other) - Number(one))
    .slice(0, SLOWEST_SHOWN)
    .map(([file, millis]) => `${(Number(millis) / 1e3).toFixed(1).padStart(6)} s  ${file}\n`)
    .join("");
}

/** Files by their names, their folders or patterns. */
export function filesOf(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => {
    const isFolder = statSync(join(ROOT, pattern), { throwIfNoEntry: false })?.isDirectory() === true;
    const files = globSync(isFolder ? join(pattern, "**/*.test.ts") : pattern, { cwd: ROOT }).sort();
    if (files.length === 0) throw new RangeError(`${pattern}: expected the name or pattern of test files, found none`);
    return files;
  });
}

/** Runs processes, so many at once, and prints the output of each at its end, unless it is to be quiet. */
export async function runAll(
  processes: readonly TestProcess[],
  atOnce: number,
  { environment = {}, isQuiet = false }: { readonly environment?: NodeJS.ProcessEnv; readonly isQuiet?: boolean } = {},
): Promise<Outcome[]> {
  const waiting = [...processes];
  const outcomes: Outcome[] = [];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const beganMillis = performance.now();
      const outcome = await run(next, environment);
      const seconds = ((performance.now() - beganMillis) / 1e3).toFixed(1);
      const took = `${seconds} s, ${outcome.cpuSeconds.toFixed(1)} s of CPU`;
      if (!isQuiet) process.stdout.write(`\n${outcome.name} (${took})\n${withoutTimes(outcome.output)}`);
      outcomes.push(outcome);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return outcomes;
}

/** What a test left running may still write there. */
function clear(): void {
  for (const child of running) child.kill();
  try {
    rmSync(SCRATCH, { recursive: true, force: true, maxRetries: 3 });
  } catch (error) {
    process.stderr.write(`${SCRATCH} is left: ${String(error)}\n`);
  }
}

process.once("exit", clear);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
