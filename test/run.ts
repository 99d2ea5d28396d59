import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { sharesProcess } from "./lanes.ts";

const ROOT = resolve(import.meta.dirname, "..");
const PROPERTY_SEED = "./test/property-seed.ts";
/** What was compiled by one process is read back by the next, also by those that tests start. */
const COMPILED = resolve(ROOT, "node_modules/.cache/gnomon");

interface Lane {
  readonly files: readonly string[];
  readonly options: readonly string[];
}

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

function lanes(): Lane[] {
  const all = globSync("test/**/*.test.ts", { cwd: ROOT }).sort();
  const alone = { files: all.filter((file) => !sharesProcess(file)), options: concurrency() };
  return [alone, { files: all.filter(sharesProcess), options: ["--test-isolation=none", "--test-force-exit"] }];
}

/** Files at once in the lane of processes; the other lane keeps one core busy. */
function concurrency(): string[] {
  return [`--test-concurrency=${Math.max(1, availableParallelism() - 1)}`];
}

/** Runs one lane of `node --test`; its output is passed on line by line as it comes. */
function run({ files, options }: Lane, counts: Counts): Promise<number> {
  const argv = ["--import", PROPERTY_SEED, "--test", "--test-reporter=spec", ...options, ...files];
  const env = { NODE_COMPILE_CACHE: COMPILED, ...process.env };
  const child = spawn(process.execPath, argv, { cwd: ROOT, env, stdio: ["ignore", "pipe", "inherit"] });
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      count(line, counts);
      process.stdout.write(`${line}\n`);
    }
  });
  return new Promise((done) => child.once("close", (code) => done(code ?? 1)));
}

function count(line: string, counts: Counts): void {
  const [, kind, number] = /^ℹ (pass|fail|cancelled|skipped|todo) (\d+)$/.exec(line) ?? [];
  if (kind === "pass") counts.passed += Number(number);
  else if (kind === "fail" || kind === "cancelled") counts.failed += Number(number);
  else if (kind !== undefined) counts.skipped += Number(number);
}

/** `node test/run.ts [FILE...]`: all tests, in two lanes at once, or only those named, each in a process. */
async function main(named: readonly string[]): Promise<void> {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  const chosen = named.length > 0 ? [{ files: named, options: concurrency() }] : lanes();
  const codes = await Promise.all(chosen.map((lane) => run(lane, counts)));
  process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
  process.exitCode = codes.every((code) => code === 0) ? 0 : 1;
}

await main(process.argv.slice(2));
