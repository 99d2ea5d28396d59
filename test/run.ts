import { parseArgs } from "node:util";
import {
  AT_ONCE,
  countsOf,
  FAILURES,
  failuresOf,
  filesOf,
  NONE,
  runAll,
  slowest,
  sum,
  type Outcome,
} from "./process-runner.ts";
import { eachAlone, testProcesses } from "./processes.ts";
import { type Again, processesToRerun, verdictOf } from "./rerun.ts";

/**
 * `node test/run.ts [--tolerate N] [FILE...]`: all tests, or only those named, each in a process. Of all tests those that
 * failed get a second try, alone (./rerun.ts), which names those that were short of time; up to N of them are tolerated.
 */
async function main(named: readonly string[], tolerated: number): Promise<void> {
  const processes = named.length > 0 ? eachAlone(filesOf(named)) : testProcesses(filesOf(["test/**/*.test.ts"]));
  const outcomes = await runAll(processes, AT_ONCE);
  const failed = outcomes.filter((outcome) => failuresOf(outcome) !== "");
  const failures = failed.map(failuresOf).join("");
  const counts = outcomes.map(({ output }) => countsOf(output) ?? NONE).reduce(sum, NONE);
  if (failures !== "") process.stdout.write(`\n${FAILURES}\n${failures}`);
  const again = named.length > 0 ? undefined : await tryAgain(failed);
  process.stdout.write(`\nslowest files, beside ${AT_ONCE - 1} other processes:\n${slowest(outcomes)}`);
  const { isGood, line } = verdictOf({ counts, failures, again }, tolerated);
  process.stdout.write(`\n${line}\n`);
  process.exitCode = isGood ? 0 : 1;
}

/** Undefined where nothing is tried again. */
async function tryAgain(failed: readonly Outcome[]): Promise<Again | undefined> {
  const processes = processesToRerun(failed);
  if (processes.length === 0) return undefined;
  process.stdout.write("\nonce more, one at a time:\n");
  const rerun = await runAll(processes, 1);
  return { files: rerun.map(({ name }) => name), failures: rerun.map(failuresOf).join("") };
}

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { tolerate: { type: "string", default: "0" } },
});
await main(positionals, Number(flags.tolerate));
