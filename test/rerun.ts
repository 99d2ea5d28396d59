import type { Counts } from "./process-runner.ts";
import { eachAlone, type TestProcess } from "./processes.ts";

/** More than this that fail are no matter of chance. */
const RERUN_PROCESSES_MAX = 5;
const FAILED_TEST = /^test at (\S+\.ts):\d+:\d+$/gm;

interface Failed extends TestProcess {
  readonly output: string;
}

/**
 * What to run once more after everything else ended, one process at a time: what failed beside two other processes on two
 * cores and passes alone was short of time, and is reported by name so that it gets mended. A test that fails for another
 * reason fails again, since properties are tried on the same cases in every run. Nothing where too much failed.
 */
export function processesToRerun(failed: readonly Failed[]): TestProcess[] {
  const processes = failed.flatMap(({ files, isShared, output }) => {
    const named = [...new Set([...output.matchAll(FAILED_TEST)].map(([, file]) => file!))];
    // A failure in a suite that many files share names that suite's file, and a process that was killed names none.
    const isKnown = named.length > 0 && named.every((file) => files.includes(file));
    return isKnown ? eachAlone(named) : [{ files, isShared }];
  });
  return processes.length > RERUN_PROCESSES_MAX ? [] : processes;
}

/** What became of those that were tried again. */
export interface Again {
  /** The processes that were. */
  readonly files: readonly string[];
  /** "" where all passed. */
  readonly failures: string;
}

interface Run {
  readonly counts: Counts;
  /** Of the first try. */
  readonly failures: string;
  readonly again: Again | undefined;
}

/**
 * Whether a run is good, and its last line. What passed only when it was run again alone is named, and is a failure where
 * there are more such tests than are tolerated.
 */
export function verdictOf(
  { counts: { passed, failed, skipped }, failures, again }: Run,
  tolerated: number,
): { readonly isGood: boolean; readonly line: string } {
  const tests = [...failures.matchAll(/^✖ (.*) \([\d.]+ms\)$/gm)].map(([, name]) => `"${name}"`);
  const isAllShortOfTime = again?.failures === "";
  const shortOfTime = isAllShortOfTime ? Math.max(tests.length, again.files.length) : 0;
  const isGood = failures === "" || (isAllShortOfTime && shortOfTime <= tolerated);
  const note = isAllShortOfTime
    ? `; passed only when run again alone, and to be mended: ${[...again.files, ...tests].join(" ")}`
    : "";
  const counted = isGood ? [passed + failed, 0] : [passed, Math.max(failed, shortOfTime)];
  return { isGood, line: `${counted[0]} passed, ${counted[1]} failed, ${skipped} skipped${note}` };
}
